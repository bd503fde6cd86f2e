import type { Statement } from './statements.js';

/** A call of a watched object. */
export interface WatchedCall {
  /** The statement, or the class and the method. */
  readonly what: string;
  /** Line of the code that made the call: the first of its stack outside of `node_modules`. */
  readonly at: string | undefined;
}

/** Keys whose leases were passed to `fenceTransaction`, in one transaction or one watched method. */
export type FencedKeys = ReadonlySet<string>;

/** The locks at the time of a call. */
export interface Moment {
  /** Whether the app holds a lock, or runs on after its loss. */
  readonly isInSection: boolean;
  /** Keys that the work has lost. Empty: it is not late. */
  readonly lostKeys: readonly string[];
}

/** Hears of each write that has happened. */
export type Wrote = (call: WatchedCall, moment: Moment, fenced: FencedKeys) => void;

/** What follows from the end of a call. */
export interface Ending {
  readonly succeeded?: (value: unknown) => void;
  readonly failed?: () => void;
}

/** Collects the keys of fences. */
export interface Scope {
  readonly fenced: Set<string>;
}

interface Write {
  readonly call: WatchedCall;
  readonly moment: Moment;
  hasFailed: boolean;
}

/** What a transaction does behind a savepoint. The first one stands for its beginning. */
interface Layer extends Scope {
  /** Name of the savepoint. Undefined once it was released. */
  name: string | undefined;
  readonly writes: Write[];
}

const NONE: FencedKeys = new Set();

const layer = (name?: string): Layer => ({ name, fenced: new Set(), writes: [] });

/** The later of two moments of a write. A loss at the first one remains. */
const both = (written: Moment, committed: Moment): Moment => ({
  isInSection: written.isInSection || committed.isInSection,
  lostKeys: written.lostKeys.length > 0 ? written.lostKeys : committed.lostKeys,
});

/** PostgreSQL replies `ROLLBACK` to the COMMIT of a transaction that has failed. */
const isRollback = (reply: unknown): boolean =>
  typeof reply === 'object' && reply !== null && (reply as { command?: unknown }).command === 'ROLLBACK';

/** The transaction of one connection. It changes when a statement is sent, in the order of the statements. */
export class ConnectionState {
  private layers: Layer[] | undefined;
  /** Pending while a call of this connection is delayed: later calls wait behind it. */
  ahead: Promise<void> | undefined;

  /** @param isPool whether each statement may run on another connection, so that none is in a transaction */
  constructor(private readonly isPool: boolean) {}

  get isInTransaction(): boolean {
    return this.layers !== undefined;
  }

  /** Scope of a fence that runs now. */
  get scope(): Scope | undefined {
    return this.layers?.at(-1);
  }

  /** Forgets the transaction: its connection was released. */
  reset(): void {
    this.layers = undefined;
  }

  /** Notes a statement that is sent now. Returns what follows from its end. */
  send({ kind, savepoint }: Statement, call: WatchedCall, moment: Moment, wrote: Wrote): Ending {
    if (kind === 'write') return this.write(call, moment, wrote);
    if (kind === 'several') {
      const open = this.end(moment, wrote);
      const own = this.write(call, moment, wrote);
      return { succeeded: (value) => [open, own].forEach(({ succeeded }) => succeeded?.(value)) };
    }
    if (this.isPool || kind === 'read') return {};
    if (kind === 'begin') return this.begin(moment, wrote);
    if (kind === 'commit') return this.end(moment, wrote);
    if (kind === 'rollback') this.reset();
    if (kind === 'savepoint') this.layers?.push(layer(savepoint));
    if (kind === 'release') for (const one of this.from(savepoint) ?? []) one.name = undefined;
    return kind === 'rollback to' ? this.rollBackTo(savepoint) : {};
  }

  private write(call: WatchedCall, moment: Moment, wrote: Wrote): Ending {
    const layers = this.layers;
    if (!layers) return { succeeded: () => wrote(call, moment, NONE) };
    const write: Write = { call, moment, hasFailed: false };
    layers.at(-1)!.writes.push(write);
    return { failed: () => (write.hasFailed = true) };
  }

  /** MySQL commits the transaction that is open at a BEGIN. */
  private begin(moment: Moment, wrote: Wrote): Ending {
    const { succeeded } = this.end(moment, wrote);
    const layers = (this.layers = [layer()]);
    const failed = (): void => {
      if (this.layers === layers) this.reset();
    };
    return succeeded ? { succeeded, failed } : { failed };
  }

  private end(moment: Moment, wrote: Wrote): Ending {
    const layers = this.layers;
    this.reset();
    if (!layers) return {};
    return {
      succeeded: (reply) => {
        if (isRollback(reply)) return;
        const fenced = new Set(layers.flatMap((one) => [...one.fenced]));
        for (const write of layers.flatMap(({ writes }) => writes))
          if (!write.hasFailed) wrote(write.call, both(write.moment, moment), fenced);
      },
    };
  }

  private rollBackTo(savepoint: string | undefined): Ending {
    const { layers } = this;
    if (!layers) return {};
    const undone = this.from(savepoint);
    // An unknown savepoint: the fences may be undone, and the writes may stay.
    if (!undone) for (const { fenced } of layers) fenced.clear();
    if (!undone) return {};
    layers.splice(-undone.length, undone.length, layer(savepoint));
    const kept = layers.at(-1)!;
    return { failed: () => kept.writes.unshift(...undone.flatMap(({ writes }) => writes)) };
  }

  /** Returns what came since a savepoint. */
  private from(savepoint: string | undefined): Layer[] | undefined {
    if (savepoint === undefined || !this.layers) return undefined;
    const at = this.layers.findLastIndex(({ name }) => name === savepoint);
    return at < 0 ? undefined : this.layers.slice(at);
  }
}

/** Starts a call behind its delay, and behind earlier calls of its connection that are delayed. */
export const inOrder = (
  state: ConnectionState | undefined,
  delayed: Promise<void> | undefined,
  start: () => unknown,
): Promise<unknown> => {
  const begun = Promise.all([state?.ahead, delayed]).then(() => undefined);
  const result = begun.then(start);
  if (!state) return result;
  const ahead: Promise<void> = begun
    .catch(() => undefined)
    .then(() => {
      if (state.ahead === ahead) state.ahead = undefined;
    });
  state.ahead = ahead;
  return result;
};
