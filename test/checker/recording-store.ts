import type {
  AcquireReply,
  Claim,
  ExtendReply,
  HoldInfo,
  LockKind,
  ReleaseReply,
} from '../../lib/core/seam/claim.js';
import type { LockStore, ReleaseOptions, StoreFailure, Watch } from '../../lib/core/seam/lock-store.js';
import type { AnsweredEvent, AsksEvent } from './history.js';

/** What is written down; when and by whom is added by the one who writes. */
export type StoreEvent = Omit<AsksEvent, 'at' | 'process'> | Omit<AnsweredEvent, 'at' | 'process'>;

const outcomeOf = (failure: unknown): string =>
  typeof failure === 'object' && failure !== null && 'outcome' in failure
    ? String(failure.outcome)
    : 'broken';

/** Stands before another store, of whatever make, and writes down what the core asks it and when it is answered. */
export class RecordingStore implements LockStore {
  readonly kinds: ReadonlySet<LockKind>;
  readonly checkKey: LockStore['checkKey'];
  private requests = 0;
  private openWatches = 0;

  constructor(
    private readonly store: LockStore,
    /** Put before the numbers of requests, so that they differ from those of other processes. */
    private readonly name: string,
    private readonly write: (event: StoreEvent) => void,
  ) {
    this.kinds = store.kinds;
    this.checkKey = store.checkKey?.bind(store);
  }

  /** How many watches the core has not closed. */
  get watches(): number {
    return this.openWatches;
  }

  acquire(claim: Claim): Promise<AcquireReply> {
    return this.record(
      'acquire',
      [claim.key],
      () => this.store.acquire(claim),
      ({ status }) => status,
    );
  }

  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    const keys = claims.map(({ key }) => key);
    const outcome = (replies: readonly ExtendReply[]) => replies.map(({ status }) => status).join(' ');
    return this.record('extend', keys, () => this.store.extendMany(claims), outcome);
  }

  release(claim: Claim, how?: ReleaseOptions): Promise<ReleaseReply> {
    const outcome = ({ wasHeld, othersWaiting }: ReleaseReply) =>
      `${wasHeld ? 'was held' : 'was not held'}${othersWaiting ? ', others wait' : ''}`;
    return this.record(
      how?.doubt ? 'undo' : 'release',
      [claim.key],
      () => this.store.release(claim, how),
      outcome,
    );
  }

  inspect(kind: LockKind, key: string): Promise<HoldInfo | null> {
    return this.record(
      'inspect',
      [key],
      () => this.store.inspect(kind, key),
      (hold) => hold?.owner ?? 'free',
    );
  }

  forceUnlock(kind: LockKind, key: string): Promise<boolean> {
    return this.record('forceUnlock', [key], () => this.store.forceUnlock(kind, key), String);
  }

  ping(): Promise<void> {
    return this.record(
      'ping',
      [],
      () => this.store.ping(),
      () => 'pong',
    );
  }

  watch(kind: LockKind, key: string, onHint: () => void, onFailure: (cause: StoreFailure) => void): Watch {
    const watch = this.store.watch(kind, key, onHint, onFailure);
    let open = true;
    this.openWatches++;
    return {
      get live() {
        return watch.live;
      },
      close: () => {
        if (open) this.openWatches--;
        open = false;
        watch.close();
      },
    };
  }

  close(): Promise<void> {
    return this.store.close();
  }

  private record<T>(
    what: string,
    keys: readonly string[],
    ask: () => Promise<T>,
    outcomeOfReply: (value: T) => string,
  ): Promise<T> {
    const request = `${this.name}#${++this.requests}`;
    this.write({ type: 'asks', request, what, keys });
    const answered = (outcome: string): void => this.write({ type: 'answered', request, outcome });
    // Awaited here, and not beside it: the answer is written before the core hears it.
    return ask().then(
      (value) => {
        answered(outcomeOfReply(value));
        return value;
      },
      (failure: unknown) => {
        answered(outcomeOf(failure));
        throw failure;
      },
    );
  }
}
