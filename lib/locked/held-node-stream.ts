import { errorMonitor } from 'node:events';
import { methodOf, replace } from './held-iterable.js';
import { tooLate, whenUnread } from './reading.js';

type End = 'close' | 'end' | 'finish' | typeof errorMonitor;

export interface NodeStream {
  once(event: End | 'error', listener: () => void): unknown;
  destroy(error?: Error): unknown;
  readonly destroyed?: boolean;
  readonly errored?: unknown;
  readonly readable?: boolean;
  /** Null while nothing is there that would read it. */
  readonly readableFlowing?: boolean | null;
  readonly readableDidRead?: boolean;
  readonly writable?: boolean;
  readonly writableFinished?: boolean;
}

/**
 * Keeps a Node stream locked until it was read to its end, has failed or is destroyed. Not every stream tells of each
 * with 'close': those without autoDestroy or emitClose, and those of readable-stream 3, do not.
 */
export const holdNodeStream = (stream: NodeStream, where: string): Promise<void> =>
  new Promise((resolve) => {
    // A duplex that never had a reading side, or has none any more, ends with its writing side.
    const isRead = methodOf(stream, 'read') !== undefined && stream.readable !== false;
    const hasEnded = !isRead && (stream.writableFinished ?? !stream.writable);
    if (stream.destroyed || stream.errored || hasEnded) return resolve();

    const stopTimer = whenUnread(() => {
      if (stream.readableFlowing !== null || stream.readableDidRead) return;
      // An error without a listener would end the process; a reader that comes later gets it from the stream.
      stream.once('error', () => undefined);
      stream.destroy(tooLate(where));
    });
    const end = (): void => {
      stopTimer();
      resolve();
    };
    // Not 'error' itself: to listen to that would be to handle it.
    for (const event of ['close', isRead ? 'end' : 'finish', errorMonitor] as const) stream.once(event, end);
    whenDestroyed(stream, end);
  });

/** With `emitClose: false` nothing is emitted, so it is seen where the stream lets go of what it reads from. */
const whenDestroyed = (stream: NodeStream, end: () => void): void => {
  const original = methodOf(stream, '_destroy');
  if (!original || !Object.isExtensible(stream)) return;
  replace(stream, '_destroy', (error, done) =>
    original.call(stream, error, (...outcome: unknown[]) => {
      end();
      return (done as (...outcome: unknown[]) => unknown)(...outcome);
    }),
  );
};
