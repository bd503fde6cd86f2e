import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { Poller } from '../../../lib/core/wait/poller.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { Claim, ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type {
  AllKindStores,
  KindStore,
  LockStore,
  Watch,
  WatchListener,
} from '../../../lib/core/seam/lock-store.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import type { QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { AcquireReply, Holder, Queued, Taken } from '../../../lib/core/seam/reply.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';

/** What the contract suite needs to know about one kind of store and its backing server. */
export interface StoreHarness {
  /** True when `pass` moves a clock instead of waiting; then what is left of a lease is known exactly. */
  readonly virtualTime: boolean;
  /** Whether a place in line ends when nobody keeps it; else it lives until it is left. */
  readonly entriesExpire: boolean;
  /** Where the backing server is; undefined for a store that lives in its process. */
  readonly address?: string;
  /** A store of its own on the same backing server, as another process would have it. The suite closes it. */
  connect(): Promise<FullStore>;
  /** Lets at least this much time pass for the holds. */
  pass(ms: number): Promise<void>;
  /** What the backing server keeps. */
  leftovers(): Promise<Leftovers>;
  cleanup(): Promise<void>;
}

/** What a backing server keeps. */
export interface Leftovers {
  /** Not the bounded fence counters. */
  readonly holds: number;
  /** Subscriptions of any client, without its ear. */
  readonly watches: number;
  /** How many processes hear on a channel of their own when it is their turn. */
  readonly grantSubscriptions: number;
}

/** A store that has all kinds, and the objects without a holder. */
export type FullStore = LockStore &
  Required<Pick<LockStore, 'list' | 'permits' | 'processes' | 'semaphores' | 'latches'>> & {
    readonly kinds: AllKindStores;
  };

export type MakeHarness = () => Promise<StoreHarness>;

/** Lets real time pass. A server counts in whole ms and ends a lease after its last one; timers may come up to 1 ms early. */
export const passRealTime = async (ms: number): Promise<void> => {
  const until = performance.now() + ms + 2;
  for (let left = ms + 2; left > 0; left = until - performance.now()) await sleep(left);
};

/** Long enough that no hold ends by itself while a test runs. */
export const LONG_LEASE_MS = 30_000;

const WAKE_UP_DEADLINE_MS = 10_000;

/** The name of a process, as this library has it: a UUID of version 8. */
export const newProcess = (): string => systemRuntime().newId();

/** An owner id that nobody used before. */
export const newOwner = (): string => `${newProcess()}:1`;

/** A key that no other test uses. */
export const newKey = (name = 'key'): string => `lock:${name}:${randomUUID()}`;

/** A claim with an owner of its own, a long lease and one fencing token, unless told otherwise. */
export const claimFor = (key: string, overrides: Partial<ExclusiveClaim> = {}): ExclusiveClaim => ({
  kind: 'exclusive',
  finalKey: key,
  owner: newOwner(),
  leaseMs: LONG_LEASE_MS,
  tokens: 1,
  waits: false,
  ...overrides,
});

export function expectGranted(reply: AcquireReply): asserts reply is Grant {
  expect(reply).toMatchObject({ status: 'granted' });
}

export function expectTaken(reply: AcquireReply): asserts reply is Taken {
  expect(reply).toMatchObject({ status: 'taken' });
}

/** Acquires, expects a grant with a token, and returns the token. */
export async function takeToken(store: FullStore, claim: ExclusiveClaim): Promise<number> {
  const reply = await store.kinds.exclusive.acquire(claim);
  expectGranted(reply);
  expect(Number.isSafeInteger(reply.token)).toBe(true);
  return reply.token as number;
}

/** The part of a store that keeps claims like this one. */
const storeOf = (store: FullStore, { kind }: Claim): KindStore => store.kinds[kind];

const pollers = new WeakMap<KindStore, Poller>();

/** Watches as the core does: a store that is asked at intervals has one poller for each kind. */
const watchOf = (kind: KindStore, claim: Claim, listener: WatchListener): Watch => {
  const poll = kind.traits?.poll;
  if (!poll) return kind.watch!(claim, listener);
  const poller = pollers.get(kind) ?? new Poller(kind, poll, systemRuntime());
  pollers.set(kind, poller);
  return poller.watch(claim, listener);
};

/** A watcher that counts its hints and can wait for the next one. */
export class WakeUpCounter {
  count = 0;
  readonly failures: StoreFailure[] = [];
  readonly watch: Watch;
  private wake: (() => void) | undefined;

  /** @param on a claim, or the key of an exclusive one. */
  constructor(store: FullStore, on: string | Claim, onWakeUp?: () => void) {
    const claim = typeof on === 'string' ? claimFor(on) : on;
    this.watch = watchOf(storeOf(store, claim), claim, {
      notified: () => {
        this.count += 1;
        onWakeUp?.();
        this.wake?.();
      },
      failed: (cause) => {
        this.failures.push(cause);
        this.wake?.();
      },
    });
  }

  /** Watches, and returns when the subscription is live. */
  static async live(store: FullStore, on: string | Claim, onWakeUp?: () => void): Promise<WakeUpCounter> {
    const wakeUps = new WakeUpCounter(store, on, onWakeUp);
    await wakeUps.until(() => wakeUps.watch.live);
    return wakeUps;
  }

  /** Resolves with the next hint after the first `seen` ones. */
  async next(seen = this.count): Promise<void> {
    await this.until(() => this.count > seen);
  }

  /** Resolves when the condition is true, looked at after each hint and failure. */
  async until(condition: () => boolean): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () =>
          reject(
            new Error(
              `no wake-up within ${String(WAKE_UP_DEADLINE_MS)} ms, after ${String(this.count)} hints`,
            ),
          ),
        WAKE_UP_DEADLINE_MS,
      );
    });
    try {
      while (!condition()) {
        const wakeUp = new Promise<void>((resolve) => {
          this.wake = resolve;
        });
        await Promise.race([wakeUp, late]);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Resolves with what a queued claim is granted. */
const turnOf = ({ entry }: Queued): Promise<Grant> =>
  new Promise((resolve, reject) => {
    const notified = (outcome: QueueEntryOutcome): void => {
      if (outcome.status === 'granted') resolve(outcome);
      else reject(new Error(`its place is ${outcome.status}`));
    };
    entry.listen({ notified, missedNotification: () => undefined });
  });

/** Asks as the core does: an overloaded store executed nothing, and is asked again. */
const acquire = async (kind: KindStore, claim: Claim): Promise<AcquireReply> => {
  for (;;) {
    try {
      return await kind.acquire(claim);
    } catch (error) {
      if (!(error instanceof StoreFailure && error.overloaded)) throw error;
    }
  }
};

/**
 * Waits for the key as the core does: try, watch, and try again on each hint; or in the store's queue, when that tells of
 * turns. Never waits for a lease's end.
 */
export async function takeWhenFree(store: FullStore, claim: Claim): Promise<Grant> {
  const kind: KindStore = storeOf(store, claim);
  const isTold = !kind.watch && !kind.traits?.poll;
  const first = await acquire(kind, isTold ? { ...claim, waits: true } : claim);
  if (first.status === 'granted') return first;
  if (first.status === 'queued' && isTold) return turnOf(first);
  const wakeUps = new WakeUpCounter(store, claim);
  try {
    for (let seen = 0; ;) {
      await wakeUps.next(seen);
      seen = wakeUps.count;
      const reply = await acquire(storeOf(store, claim), claim);
      if (reply.status === 'granted') return reply;
    }
  } finally {
    wakeUps.watch.close();
  }
}

/** One turn of the event loop, in which everything that was already delivered is handled. */
export const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What a part of the contract works with. */
export interface ContractContext {
  /** Whether waiters of the exclusive lock stand in a line. */
  readonly hasWaitQueue: boolean;
  /** Whether a key is given by several servers together: then a claim may be given back before it has its token. */
  readonly severalNodes: boolean;
  /** Whether the core asks about keys at intervals. It is never told of an end that is still to come. */
  readonly polled: boolean;
  /** Whether an exclusive lock and permits of one key see each other. In Redis each finds only data that is not its own. */
  readonly seesOtherKinds: boolean;
  /** Whether it has Redisson's counters of tokens. */
  readonly hasCounters: boolean;
  /** Whether a key may have a NUL character. */
  readonly takesNul: boolean;
  /** Whether holds end with the session of their process, and not by themselves. Its waiters are told of their turns. */
  readonly hasSessions: boolean;
  readonly harness: StoreHarness;
  /** A store on the harness's server, closed after the test. */
  connect(): Promise<FullStore>;
}

/** How a store differs from others. */
export interface StoreTraits extends Partial<Omit<ContractContext, 'harness' | 'connect'>> {
  /** The kinds that it has; default: all. */
  readonly kinds?: readonly LockKind[];
  /** Whether it has semaphores and latches; default: true. */
  readonly hasObjects?: boolean;
}

/** Who has the key, the first of them; null when nobody has it. */
export async function holderOf(store: LockStore, finalKey: string): Promise<Holder | null> {
  const state = await store.inspect(finalKey);
  return state?.holders[0] ?? null;
}
