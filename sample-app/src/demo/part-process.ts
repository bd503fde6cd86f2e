/** What the parts of the demo, each a process of its own, tell the process that started them. */
export type PartMessage =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'failed'; readonly reason: string }
  | Acquired;

/** An instance of the app has just got the lock. */
export interface Acquired {
  readonly type: 'acquired';
  readonly key: string;
  /** With this begin the names of all its holds in Redis. */
  readonly owner: string;
  readonly token: number;
}

/** Sends a message to the starting process, if there is one that listens. */
export const tell = (message: PartMessage): void => {
  if (process.connected) process.send?.(message);
};

/**
 * Runs a part: tells where it can be reached, and ends it when the starting process is gone, however it went. What
 * a part has to tidy up belongs into a listener of `process.once('exit')`.
 */
export const runPart = async (start: () => Promise<string>): Promise<void> => {
  process.once('disconnect', () => process.exit());
  try {
    const url = await start();
    tell({ type: 'ready', url });
    // For whoever starts it by hand.
    if (!process.connected) process.stdout.write(`${url}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell({ type: 'failed', reason });
    if (!process.connected) process.stderr.write(`${reason}\n`);
    process.exitCode = 1;
    process.disconnect?.();
  }
};
