import { LockConfigurationError } from '../errors/lock.errors.js';
import {
  LockEventHub,
  type LockEventListener,
  type LockEvents,
  type LockLogger,
} from '../report/lock-events.js';
import type { ShowKey, WithShownKey } from '../util/shown-key.js';
import type { LockStore } from '../seam/lock-store.js';
import type { Hold } from './hold.js';

const EVENT = 'revocation-requested';

/** Called when another client asks for the lock. */
export type RevocationListener = LockEventListener<typeof EVENT>;

export interface RevocationsHost {
  readonly store: Pick<LockStore, 'name' | 'revoke'>;
  readonly events: LockEventHub;
  readonly logger: LockLogger;
  readonly shown: ShowKey;
  now(): number;
  holds(): readonly Hold[];
}

/** Tells holders that another client asks them to release. Each hold is asked once; it stays valid. */
export class Revocations {
  private readonly asked = new WeakSet<Hold>();
  private readonly hubs = new WeakMap<Hold, LockEventHub>();

  constructor(private readonly host: RevocationsHost) {}

  /** Another client has asked an owner. */
  requested(finalKey: string, owner: string): void {
    const { host, asked, hubs } = this;
    for (const hold of host.holds()) {
      const { claim } = hold;
      if (claim.finalKey !== finalKey || claim.owner !== owner || asked.has(hold)) continue;
      asked.add(hold);
      const event = this.eventOf(hold);
      for (const hub of [host.events, hubs.get(hold)]) hub?.emit(EVENT, () => event);
    }
  }

  /** Calls the listener when a hold is asked for, at once if it was before. Returns a function that removes it. */
  listen(hold: Hold, listener: RevocationListener): () => void {
    this.checkStore();
    const { asked, hubs, host } = this;
    if (hold.claim.kind === 'permit') {
      const key = host.shown(hold.key);
      throw new LockConfigurationError(`The holder of a permit of "${key}" cannot be asked to release it.`, {
        key,
      });
    }
    const isLate = asked.has(hold);
    const hub = (isLate ? undefined : hubs.get(hold)) ?? new LockEventHub(host.logger);
    const stop = hub.on(EVENT, listener);
    if (isLate) hub.emit(EVENT, () => this.eventOf(hold));
    else hubs.set(hold, hub);
    return stop;
  }

  /** Returns how the store asks. */
  checkStore(): NonNullable<LockStore['revoke']> {
    const { store } = this.host;
    if (store.revoke) return (finalKey) => store.revoke!(finalKey);
    throw new LockConfigurationError(
      `${store.name} cannot ask a holder to release its lock. The store on ZooKeeper can.`,
    );
  }

  private eventOf({ key, claim, label, grantedAt }: Hold): WithShownKey<LockEvents[typeof EVENT]> {
    const { host } = this;
    const heldMs = Math.round(host.now() - grantedAt);
    return { key: host.shown(key), kind: claim.kind, label, heldMs };
  }
}
