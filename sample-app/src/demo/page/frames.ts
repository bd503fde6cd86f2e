import { Observable } from 'rxjs';
import type { Board } from '../live/board.js';
import type { Snapshot } from '../live/snapshot.js';

/** Minimum time between two frames, in ms: 20 in a second. */
const PERIOD_MS = 50;
/** Maximum time between two frames, in ms: the page sees that the server is there. */
const BEAT_MS = 1_000;

/** Emits a snapshot of the board now, and whenever it has changed, but never too often. Completes after the last one. */
export const frames = (board: Board): Observable<Snapshot> =>
  new Observable((subscriber) => {
    let sentAt = -Infinity;
    let timer: NodeJS.Timeout | undefined;
    const send = () => {
      timer = undefined;
      sentAt = performance.now();
      const snapshot = board.snapshot();
      subscriber.next(snapshot);
      if (snapshot.isLast) subscriber.complete();
    };
    const changed = () => {
      timer ??= setTimeout(send, Math.max(0, sentAt + PERIOD_MS - performance.now()));
    };
    const off = board.onChange(changed);
    const beat = setInterval(changed, BEAT_MS);
    send();
    return () => {
      off();
      clearInterval(beat);
      clearTimeout(timer);
    };
  });
