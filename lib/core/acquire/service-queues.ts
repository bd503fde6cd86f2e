import { heldHereText } from '../errors/error-messages.js';
import type { LockNotAcquiredError } from '../errors/lock.errors.js';
import { KINDS, kindOf, type LockKind } from '../kinds/kinds.js';
import type { KindTraits } from '../seam/kind-traits.js';
import type { Wait } from '../wait/wait.js';
import { LocalQueues, type LocalQueuesHost } from './local-queues.js';

/** The local queues of a service, of all kinds. */
export class ServiceQueues {
  private readonly ofKinds: Readonly<Record<LockKind, LocalQueues>>;

  constructor(
    traits: Readonly<Record<LockKind, KindTraits>>,
    private readonly host: LocalQueuesHost,
  ) {
    const kinds = Object.keys(KINDS) as LockKind[];
    this.ofKinds = Object.fromEntries(
      kinds.map((kind) => [kind, new LocalQueues(kindOf(kind).singleHolder, traits[kind].eachQueued, host)]),
    ) as Record<LockKind, LocalQueues>;
  }

  /** How many keys callers hold or ask for. */
  get keyCount(): number {
    return this.all.reduce((sum, { keyCount }) => sum + keyCount, 0);
  }

  /** Returns the local queue of a caller. Throws when the caller needs its own queue, and too many wait already. */
  forCaller(kind: LockKind, finalKey: string, key: string): ReturnType<LocalQueues['forCaller']> {
    return this.ofKinds[kind].forCaller(finalKey, key);
  }

  /**
   * Registers a forced unlock that is about to be sent. Call the returned function when the store has replied. It
   * invalidates grants that the store gave before the unlock, even if their replies are still to come.
   */
  forcing(finalKey: string): () => void {
    const queues = this.all.flatMap((ofKind) => ofKind.of(finalKey));
    const attempts = queues.map((queue) => queue.attempts);
    const requestedAt = this.host.runtime.now();
    for (const queue of queues) queue.forcedAt = requestedAt;
    return () => queues.forEach((queue, i) => queue.forcedOpen(attempts[i]!));
  }

  /** Adds to the error of a taken key that a caller of this service holds it. */
  explainHolder(error: LockNotAcquiredError, finalKey: string): void {
    if (error.code !== 'LOCK_TAKEN' || error.heldAround) return;
    for (const ofKind of this.all) {
      const held = ofKind.heldOf(finalKey);
      if (held) return void (error.message += heldHereText(held.label));
    }
  }

  /** Refuses all waiters for whom `refusal` has an error. */
  shutDown(refusal: (wait: Wait) => Error | undefined): void {
    for (const ofKind of this.all) for (const queue of ofKind.all()) queue.shutDown(refusal);
  }

  private get all(): readonly LocalQueues[] {
    return Object.values(this.ofKinds);
  }
}
