import type { ProcessNotes } from '../../core/seam/process-notes.js';
import { later } from '../../core/util/later.js';

interface Note {
  readonly text: string;
  readonly until: number;
}

/** Notes and messages of the processes that share a space. */
export class NoteSpace {
  private readonly notes = new Map<string, Note>();
  private readonly listeners = new Map<string, (text: string) => void>();

  constructor(private readonly now: () => number) {}

  /** @param request runs a request of one store */
  of(request: <T>(work: () => T) => Promise<T>): ProcessNotes {
    const { notes, listeners } = this;
    return {
      write: (name, text, ttlMs) => request(() => void notes.set(name, { text, until: this.now() + ttlMs })),
      read: (names) => request(() => names.map((name) => this.textAt(name))),
      remove: (name) => request(() => void notes.delete(name)),
      listen: (name, listener) => {
        listeners.set(name, listener);
        return () => void (listeners.get(name) === listener && listeners.delete(name));
      },
      send: (name, text) =>
        request(() => {
          const listener = listeners.get(name);
          if (listener) later(() => listener(text));
          return listener !== undefined;
        }),
    };
  }

  private textAt(name: string): string | undefined {
    const note = this.notes.get(name);
    if (!note || note.until > this.now()) return note?.text;
    this.notes.delete(name);
    return undefined;
  }
}
