/** What the parts of the demo, each a process of its own, tell the process that started them. */
export type PartMessage =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'failed'; readonly reason: string }
  | Acquired
  | AboutToWrite
  | Wrote;

/** An instance of the app has just got the lock. */
export interface Acquired {
  readonly type: 'acquired';
  readonly key: string;
  /** With this begin the names of all its holds in Redis. */
  readonly owner: string;
  readonly token: number;
}

/** An instance of the app has read the stock under the lock, and waits for {@link Leave} to reserve an article. */
export interface AboutToWrite {
  readonly type: 'about-to-write';
  /** How many articles its write leaves. */
  readonly left: number;
  readonly token: number;
}

/** The write that was told of is over: it was done, refused, or failed. */
export interface Wrote {
  readonly type: 'wrote';
  readonly token: number;
}

/** What the starting process tells an instance: its write with this token may go on. */
export interface Leave {
  readonly type: 'write';
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
