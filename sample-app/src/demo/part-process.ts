/** Message from a part of the demo, which is a process of its own, to the process that started it. */
export type PartMessage =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'failed'; readonly reason: string }
  | Acquired
  | AboutToWrite
  | Wrote
  | Clicks
  | Began
  | Sold
  | Ended
  | Refused;

/** An instance of the app has just acquired the lock. */
export interface Acquired {
  readonly type: 'acquired';
  readonly key: string;
  /** Prefix of the owner names of all its holds in the store. */
  readonly owner: string;
  readonly token: number;
  readonly at: number;
}

/** An instance has read the stock under the lock, and waits for {@link Leave} before it reserves an article. */
export interface AboutToWrite {
  readonly type: 'about-to-write';
  /** Remaining stock after its write. */
  readonly left: number;
  readonly token: number;
}

/** The announced write has ended: it was done, rejected, or failed. */
export interface Wrote {
  readonly type: 'wrote';
  readonly token: number;
}

/** Clicks that wait in an instance. */
export interface Clicks {
  readonly type: 'clicks';
  readonly waiting: number;
  /** Buyers of the first ones. */
  readonly next: readonly string[];
}

/** An instance begins to sell to a buyer; under the lock, where the strategy has one. */
export interface Began {
  readonly type: 'began';
  readonly id: number;
  readonly buyer: string;
  readonly token?: number;
  readonly at: number;
}

/** The order is in the database: not after a stale write, for a second click, or when all is sold. */
export interface Sold {
  readonly type: 'sold';
  readonly token: number;
}

/** The end of what has begun with the same id. */
export interface Ended {
  readonly type: 'ended';
  readonly id: number;
  readonly at: number;
}

/** The database refused a write that came with this token. */
export interface Refused {
  readonly type: 'refused';
  readonly token: number;
  readonly at: number;
}

/** Message from the starting process to an instance: the write with this token may go on. */
export interface Leave {
  readonly type: 'write';
  readonly token: number;
}

/** Sends a message to the starting process, if it listens. */
export const report = (message: PartMessage): void => {
  if (process.connected) process.send?.(message);
};

/**
 * Runs a part: reports its address, and ends it when the starting process is gone, for any reason. Put the part's
 * clean-up into a listener of `process.once('exit')`.
 */
export const runPart = async (start: () => Promise<string>): Promise<void> => {
  process.once('disconnect', () => process.exit());
  // The starting process may have gone while the modules of this part were loaded.
  if (process.send && !process.connected) process.exit();
  try {
    const url = await start();
    report({ type: 'ready', url });
    // Without a starting process: it was started by hand.
    if (!process.connected) process.stdout.write(`${url}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    report({ type: 'failed', reason });
    if (!process.connected) process.stderr.write(`${reason}\n`);
    process.exitCode = 1;
    process.disconnect?.();
  }
};
