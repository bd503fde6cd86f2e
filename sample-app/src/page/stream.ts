import type { Snapshot } from '../demo/live/snapshot.js';

export type Connection = 'connecting' | 'live' | 'lost' | 'over';

export interface StreamListener {
  onSnapshot(snapshot: Snapshot): void;
  onConnection(connection: Connection): void;
}

/** How soon a stream that the browser has given up is opened again, in ms. */
const REOPEN_MS = 1_000;
/** The server sends at least once a second. Without a word for so long, it stands still. */
const SILENCE_MS = 3_000;

/** Receives the snapshots of the server, and connects again when it was away. */
export class Stream {
  private source: EventSource | undefined;
  private reopening: number | undefined;
  private silence: number | undefined;
  private isOver = false;

  constructor(private readonly listener: StreamListener) {}

  open(): void {
    this.close();
    if (this.isOver) return;
    const source = new EventSource('events');
    this.source = source;
    source.addEventListener('message', ({ data }) => this.heard(JSON.parse(data as string) as Snapshot));
    source.addEventListener('error', () => {
      if (this.isOver) return;
      this.listener.onConnection('lost');
      // The browser itself connects again, except after a reply that is no stream.
      if (source.readyState === EventSource.CLOSED) this.reopen();
    });
  }

  close(): void {
    this.source?.close();
    clearTimeout(this.reopening);
    clearTimeout(this.silence);
  }

  private reopen(): void {
    clearTimeout(this.reopening);
    this.reopening = setTimeout(() => this.open(), REOPEN_MS);
  }

  private heard(snapshot: Snapshot): void {
    clearTimeout(this.silence);
    if (snapshot.isLast) {
      this.isOver = true;
      this.close();
    } else this.silence = setTimeout(() => this.listener.onConnection('lost'), SILENCE_MS);
    this.listener.onConnection(snapshot.isLast ? 'over' : 'live');
    this.listener.onSnapshot(snapshot);
  }
}
