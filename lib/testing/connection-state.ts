import type { Lease } from '../core/lease/lease.js';
import type { Statement } from './statements.js';

/** A call of a watched object. */
export interface WatchedCall {
  /** The statement, or the class and the method. */
  readonly what: string;
  /** Line of the code that made the call: the first of its stack outside of `node_modules`. */
  readonly at: string | undefined;
}

/** The locks at the time of a call. */
export interface Moment {
  /** Whether the run had acquired a lock before. Earlier calls prepare its data. */
  readonly isStarted: boolean;
  /** Leases of the run that have not ended. */
  readonly leases: readonly Lease[];
  /** Whether the call came from a section, or one of the leases has none. */
  readonly isCovered: boolean;
}

/**
 * Why a call is in the report. `lost`: it wrote without a fence after its lock was lost. `unlocked`: it wrote although
 * no lock was held from before it was sent until its reply, in a run without a loss. The others could not be seen.
 * `rejected`: it failed, and may have written before. `opaque`: the method passed a fence, and may write outside of
 * that transaction. `unwatched`: it is no call that is watched. `unawaited`: it went on when the scenario ended.
 */
export type UnfencedReason = 'lost' | 'unlocked' | 'rejected' | 'opaque' | 'unwatched' | 'unawaited';

/** Why a call needs a look although its lock may have been held. */
export type Doubt = Exclude<UnfencedReason, 'lost' | 'unlocked'>;

/** A call that has written, or may have. */
export interface Written {
  readonly call: WatchedCall;
  /** Locks when it was sent, and when it was committed. */
  readonly moments: readonly Moment[];
  /** Leases whose fence its transaction or method has passed. */
  readonly fences?: ReadonlySet<Lease> | undefined;
  readonly doubt?: Doubt | undefined;
}

/** Hears of each write at its reply. */
export type Wrote = (written: Written) => void;

/** What follows from the end of a call. */
export interface Ending {
  readonly succeeded?: (value: unknown) => void;
  readonly failed?: () => void;
}

/** Collects the leases of fences that have passed. */
export interface Scope {
  readonly fenced: Set<Lease>;
}

interface Write extends Written {
  readonly wrote: Wrote;
  hasFailed: boolean;
}

/** What a transaction does behind a savepoint. The first one stands for its beginning. */
interface Layer extends Scope {
  /** Name of the savepoint. Undefined once it was released. */
  name: string | undefined;
  readonly writes: Write[];
}

const layer = (name?: string): Layer => ({ name, fenced: new Set(), writes: [] });

/** Writes that have not failed, with the fences that have passed until now. */
const writesIn = (layers: readonly Layer[] = []): (() => readonly Write[]) => {
  const fences = new Set(layers.flatMap(({ fenced }) => [...fenced]));
  const writes = layers.flatMap((one) => one.writes);
  return () => writes.filter(({ hasFailed }) => !hasFailed).map((write) => ({ ...write, fences }));
};

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

  /** Forgets the transaction: the server has rolled it back. */
  reset(): void {
    this.layers = undefined;
  }

  /** Forgets the transaction, and reports its writes: later work may commit them. */
  abandon(): void {
    const writes = writesIn(this.layers)();
    this.reset();
    for (const write of writes) write.wrote({ ...write, doubt: 'unawaited' });
  }

  /** Notes a statement that is sent now. Returns what follows from its end. */
  send({ kind, savepoint, isSeveral }: Statement, call: WatchedCall, moment: Moment, wrote: Wrote): Ending {
    if (kind === 'write') return this.write(call, moment, wrote, isSeveral);
    if (kind === 'several') {
      const open = this.end(moment);
      const own = this.write(call, moment, wrote, true);
      return { ...own, succeeded: (value) => [open, own].forEach(({ succeeded }) => succeeded?.(value)) };
    }
    if (this.isPool || kind === 'read') return {};
    if (kind === 'begin') return this.begin(moment);
    if (kind === 'commit') return this.end(moment);
    if (kind === 'rollback') this.reset();
    if (kind === 'savepoint') this.layers?.push(layer(savepoint));
    if (kind === 'release') for (const one of this.from(savepoint) ?? []) one.name = undefined;
    return kind === 'rollback to' ? this.rollBackTo(savepoint) : {};
  }

  /** Of several statements in one text, the first may be committed although the text fails. */
  private write(call: WatchedCall, moment: Moment, wrote: Wrote, isSeveral = false): Ending {
    const written: Written = { call, moments: [moment] };
    if (!this.layers) {
      const failed = isSeveral && { failed: () => wrote({ ...written, doubt: 'rejected' }) };
      return { succeeded: () => wrote(written), ...failed };
    }
    const write: Write = { ...written, wrote, hasFailed: false };
    this.layers.at(-1)!.writes.push(write);
    return { failed: () => (write.hasFailed = true) };
  }

  /** MySQL commits the transaction that is open at a BEGIN. */
  private begin(moment: Moment): Ending {
    const { succeeded } = this.end(moment);
    const layers = (this.layers = [layer()]);
    const failed = (): void => {
      if (this.layers === layers) this.reset();
    };
    return succeeded ? { succeeded, failed } : { failed };
  }

  /** A fence counts if it has passed before the end is sent. */
  private end(moment: Moment): Ending {
    const writes = this.layers && writesIn(this.layers);
    this.reset();
    if (!writes) return {};
    return {
      succeeded: (reply) => {
        if (isRollback(reply)) return;
        for (const write of writes()) write.wrote({ ...write, moments: [...write.moments, moment] });
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
