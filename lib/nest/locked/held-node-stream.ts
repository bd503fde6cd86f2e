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
  /** Null while the stream has no reader. */
  readonly readableFlowing?: boolean | null;
  readonly readableDidRead?: boolean;
  readonly writable?: boolean;
  readonly writableFinished?: boolean;
}

/**
 * Keeps a Node stream locked until it has been read to its end, has failed, or is destroyed. The event 'close' is not
 * enough: streams without autoDestroy or emitClose, and streams of readable-stream 3, do not always emit it.
 */
export const holdNodeStream = (stream: NodeStream, where: string): Promise<void> =>
  new Promise((resolve) => {
    // A duplex stream without a reading side, or with an ended one, ends with its writing side.
    const isRead = methodOf(stream, 'read') !== undefined && stream.readable !== false;
    const hasEnded = !isRead && (stream.writableFinished ?? !stream.writable);
    if (stream.destroyed || stream.errored || hasEnded) return resolve();

    const stopTimer = whenUnread(() => {
      if (stream.readableFlowing !== null || stream.readableDidRead) return;
      // An error without a listener would end the process. A later reader gets the error from the stream.
      stream.once('error', () => undefined);
      stream.destroy(tooLate(where));
    });
    const end = (): void => {
      stopTimer();
      resolve();
    };
    // Not 'error' itself: a listener for it would count as handling the error.
    for (const event of ['close', isRead ? 'end' : 'finish', errorMonitor] as const) stream.once(event, end);
    whenDestroyed(stream, end);
  });

/** Notices the end of a stream with `emitClose: false`, which emits nothing: such a stream still calls `_destroy`. */
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
