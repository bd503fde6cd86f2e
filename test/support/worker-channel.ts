import type { WorkerMessage } from './worker.js';

export interface WorkerChannel<In extends WorkerMessage, Out extends WorkerMessage> {
  send(message: Out): void;
  /** Handles messages of one type. An error it throws ends the worker, loudly. */
  on<T extends In['type']>(
    type: T,
    handler: (message: Extract<In, { readonly type: T }>) => void | Promise<void>,
  ): void;
}

/**
 * The worker's end of a {@link TestWorker}. While the test keeps the channel open the worker lives; a worker with
 * nothing else left to do then ends by itself, and `onClose` is the place to close what would keep it.
 *
 * @example
 * const channel = workerChannel<ToWorker, FromWorker>(() => app.close());
 * channel.on('hold', async ({ key }) => channel.send({ type: 'holding', token: await hold(key) }));
 */
export function workerChannel<In extends WorkerMessage, Out extends WorkerMessage>(
  onClose: () => void | Promise<void> = () => undefined,
): WorkerChannel<In, Out> {
  if (!process.send)
    throw new Error('this module runs as a worker of a test: start it with TestWorker.start');
  process.once('disconnect', () => void onClose());
  return {
    send: (message) => {
      if (process.connected) process.send?.(message);
    },
    on: (type, handler) => {
      process.on('message', (message: In) => {
        if (message.type === type) void handler(message as Parameters<typeof handler>[0]);
      });
    },
  };
}
