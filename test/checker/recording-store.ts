import type { LockKind } from '../../lib/core/kinds/kinds.js';
import type { Claim } from '../../lib/core/seam/claim.js';
import type { KindStore, KindStores, LockStore, Watch, StoreHost } from '../../lib/core/seam/lock-store.js';
import type { LatchStore, SemaphoreStore } from '../../lib/core/seam/object-stores.js';
import type { QueueEntry } from '../../lib/core/seam/queue-entry.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  QueueEntryReply,
  ReleaseReply,
} from '../../lib/core/seam/reply.js';
import type { LeaseModel } from '../../lib/core/seam/lease-model.js';
import type { ReplyEvent, RequestEvent, Mode } from './history.js';

/** What is written down; when and by whom is added by the one who writes. */
export type StoreEvent = Omit<RequestEvent, 'at' | 'process'> | Omit<ReplyEvent, 'at' | 'process'>;

const outcomeOf = (failure: unknown): string =>
  typeof failure === 'object' && failure !== null && 'outcome' in failure
    ? String(failure.outcome)
    : 'broken';

/** How the claims, which are of one kind, take read-write locks. */
const modeOf = ([claim]: readonly Claim[]): Mode | undefined =>
  claim?.kind === 'read' || claim?.kind === 'write' ? claim.kind : undefined;

/** Whose permits, places of fair locks, or read-write locks; exclusive ones are named by their keys. */
const ownersOf = (claims: readonly Claim[]): readonly string[] | undefined =>
  claims.length > 0 && claims[0]!.kind !== 'exclusive' ? claims.map(({ owner }) => owner) : undefined;

/** Stands before another store, of whatever make, and writes down what the core asks it and when it is answered. */
export class RecordingStore implements LockStore {
  readonly kinds: KindStores;
  readonly semaphores: SemaphoreStore | undefined;
  readonly latches: LatchStore | undefined;
  readonly checkKey: LockStore['checkKey'];
  private requests = 0;
  private openWatches = 0;

  constructor(
    private readonly store: LockStore,
    /** Put before the numbers of requests, so that they differ from those of other processes. */
    private readonly process: string,
    private readonly write: (event: StoreEvent) => void,
  ) {
    const kinds = Object.entries(store.kinds) as [LockKind, KindStore][];
    this.kinds = Object.fromEntries(kinds.map(([name, kind]) => [name, this.recorded(kind)]));
    this.semaphores = store.semaphores && this.recordedSemaphores(store.semaphores);
    this.latches = store.latches && this.recordedLatches(store.latches);
    this.checkKey = store.checkKey?.bind(store);
  }

  get name(): string {
    return this.store.name;
  }

  get lease(): LeaseModel {
    return this.store.lease;
  }

  get commandTimeoutMs(): number {
    return this.store.commandTimeoutMs;
  }

  open(host: StoreHost): Promise<void> {
    return this.store.open(host);
  }

  /** How many watches the core has not closed. */
  get watches(): number {
    return this.openWatches;
  }

  inspect(key: string): Promise<KeyState | null> {
    return this.record(
      'inspect',
      [key],
      () => this.store.inspect(key),
      (found) => found?.holders.map(({ owner }) => owner).join(' ') ?? 'free',
    );
  }

  forceUnlock(key: string): Promise<boolean> {
    return this.record('forceUnlock', [key], () => this.store.forceUnlock(key), String);
  }

  ping(): Promise<void> {
    return this.record(
      'ping',
      [],
      () => this.store.ping(),
      () => 'pong',
    );
  }

  close(): Promise<void> {
    return this.store.close();
  }

  /** The same kind, which writes down what it is asked. */
  protected recorded(kind: KindStore): KindStore {
    return {
      acquire: (claim) =>
        this.record(
          'acquire',
          [claim.finalKey],
          () => (modeOf([claim]) ? this.leavingRecorded(claim, kind.acquire(claim)) : kind.acquire(claim)),
          ({ status }) => status,
          [claim],
        ),
      extendMany: (claims) => {
        const keys = claims.map(({ finalKey }) => finalKey);
        const outcome = (replies: readonly ExtendReply[]) => replies.map(({ status }) => status).join(' ');
        return this.record('extend', keys, () => kind.extendMany(claims), outcome, claims);
      },
      ...(kind.downgrade && {
        downgrade: (claim) =>
          this.record(
            'downgrade',
            [claim.finalKey],
            () => kind.downgrade!(claim),
            ({ status }) => status,
            [claim],
          ),
      }),
      ...(kind.refreshEntries && {
        refreshEntries: (claims) => {
          const keys = claims.map(({ finalKey }) => finalKey);
          const outcome = (replies: readonly QueueEntryReply[]) =>
            replies.map(({ status }) => status).join(' ');
          return this.record(
            'keep',
            keys,
            () => kind.refreshEntries!(claims),
            outcome,
            modeOf(claims) && claims,
          );
        },
      }),
      release: (claim, how) => {
        const outcome = ({ wasHeld, othersWaiting }: ReleaseReply) =>
          `${wasHeld ? 'was held' : 'was not held'}${othersWaiting ? ', others wait' : ''}`;
        const what = how?.uncertain ? 'undo' : 'release';
        return this.record(what, [claim.finalKey], () => kind.release(claim, how), outcome, [claim]);
      },
      ...(kind.watch && { watch: (claim, listener) => this.counted(kind.watch!(claim, listener)) }),
    };
  }

  private recordedSemaphores(of: SemaphoreStore): SemaphoreStore {
    const recorded = <T>(what: string, key: string, send: () => Promise<T>): Promise<T> =>
      this.record(`semaphore ${what}`, [key], send, String);
    return {
      take: (key, permits) => recorded('take', key, () => of.take(key, permits)),
      set: (key, permits) => recorded('set', key, () => of.set(key, permits)),
      add: (key, permits) => recorded('add', key, () => of.add(key, permits)),
      free: (key) => recorded('free', key, () => of.free(key)),
      drain: (key) => recorded('drain', key, () => of.drain(key)),
      remove: (key) => recorded('remove', key, () => of.remove(key)),
      watch: (key, listener) => this.counted(of.watch(key, listener)),
    };
  }

  private recordedLatches(of: LatchStore): LatchStore {
    const recorded = <T>(what: string, key: string, send: () => Promise<T>): Promise<T> =>
      this.record(`latch ${what}`, [key], send, String);
    return {
      set: (key, count) => recorded('set', key, () => of.set(key, count)),
      countDown: (key) => recorded('countDown', key, () => of.countDown(key)),
      count: (key) => recorded('count', key, () => of.count(key)),
      remove: (key) => recorded('remove', key, () => of.remove(key)),
      watch: (key, listener) => this.counted(of.watch(key, listener)),
    };
  }

  /** The same watch, which counts as open until it is closed. */
  private counted(watch: Watch): Watch {
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

  /** Who leaves the line of a read-write lock lets others in: that is written down, too. */
  private async leavingRecorded(claim: Claim, acquiring: Promise<AcquireReply>): Promise<AcquireReply> {
    const reply = await acquiring;
    if (reply.status !== 'queued') return reply;
    const { entry } = reply;
    const leave: QueueEntry['leave'] = (uncertain) =>
      this.record(
        'leave',
        [claim.finalKey],
        () => entry.leave(uncertain),
        () => 'was left',
        [claim],
      );
    return { ...reply, entry: { listen: (listener) => entry.listen(listener), leave } };
  }

  private record<T>(
    what: string,
    keys: readonly string[],
    send: () => Promise<T>,
    outcomeOfReply: (value: T) => string,
    claims: readonly Claim[] = [],
  ): Promise<T> {
    const request = `${this.process}#${++this.requests}`;
    const owners = ownersOf(claims);
    const mode = modeOf(claims);
    this.write({ type: 'request', request, what, keys, ...(owners && { owners }), ...(mode && { mode }) });
    const replied = (outcome: string): void => this.write({ type: 'reply', request, outcome });
    // Awaited here, and not beside it: the answer is written before the core hears it.
    return send().then(
      (value) => {
        replied(outcomeOfReply(value));
        return value;
      },
      (failure: unknown) => {
        replied(outcomeOf(failure));
        throw failure;
      },
    );
  }
}
