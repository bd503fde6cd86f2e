import { channel, tracingChannel } from 'node:diagnostics_channel';
import { kindIn } from '../acquire/keys-of-call.js';
import type { LossReason } from '../errors/lock.errors.js';
import type { LockKind } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';
import type { Lease } from '../lease/lease.js';
import type { ReportedLease } from '../lease/reported-leases.js';
import { runInSection, type Section } from '../nesting/section.js';
import type { KeyOfCall } from '../settings/acquire-options.js';
import type { LockCall } from '../settings/lock-call.js';

/** What the messages of all channels about locks have in common. */
interface TelemetryMessage {
  /** Kind of lock, as `held()` shows it; of a call for several kinds, that of the first key. */
  readonly kind: LockKind;
  /** Label of the call. */
  readonly label: string;
  /** Name of the lock module; undefined for the unnamed one. */
  readonly service: string | undefined;
}

/** Message of the tracing channel `nest-redis-lock:acquire`. All events of one call have the same object. */
export interface LockAcquireMessage extends TelemetryMessage {
  /** Keys of the call as the caller wrote them. */
  readonly keys: readonly string[];
  /** How long the caller waits at most, in ms. */
  readonly waitMs: number;
  /** Set for `asyncStart` and `asyncEnd` when the call got the lock. */
  readonly result?: Lease;
  /** Set from `error` on. A lock that is taken is an outcome, but it is an error here. */
  readonly error?: unknown;
}

/** Message of the tracing channel `nest-redis-lock:section`. All events of one section have the same object. */
export interface LockSectionMessage extends TelemetryMessage {
  readonly keys: readonly string[];
  readonly lease: Lease;
  /** Set from `error` on: what the section threw. */
  readonly error?: unknown;
}

/** Message of the channels `nest-redis-lock:hold-began` and `nest-redis-lock:hold-ended`: the same object for a hold. */
export interface LockHoldMessage extends TelemetryMessage {
  /** Key as the caller wrote it. */
  readonly key: string;
  /** Time that the hold lasted, in whole ms; undefined until its end. */
  heldMs?: number;
  /** Why the lock was lost; undefined for a hold that its holder released. */
  lost?: LossReason;
}

/** Message of the channel `nest-redis-lock:store`. */
export interface LockStoreMessage {
  /** False when an outage begins, true when it ends. */
  readonly up: boolean;
  readonly service: string | undefined;
  /** Why the store does not work. */
  readonly cause?: unknown;
  /** Length of the outage, in whole ms. */
  readonly downMs?: number;
}

/** Message of the channel `nest-redis-lock:fence`, which only the testing module reads. */
export interface FenceMessage {
  readonly lease: Lease;
  readonly error?: unknown;
  /** Set by the testing module: the fence is refused, as if a later holder had been in the database. */
  isRefused?: boolean;
}

// References keep the channels alive: a channel without one loses its subscribers.
export const acquisitions = tracingChannel<object, LockAcquireMessage>('nest-redis-lock:acquire');
export const sections = tracingChannel<object, LockSectionMessage>('nest-redis-lock:section');
const holdsBegan = channel('nest-redis-lock:hold-began');
const holdsEnded = channel('nest-redis-lock:hold-ended');
const stores = channel('nest-redis-lock:store');
export const fences = tracingChannel<object, FenceMessage>('nest-redis-lock:fence');

/** Publishes what one service does on channels of `node:diagnostics_channel`. Costs nothing without a subscriber. */
export class Telemetry {
  private readonly holds = new WeakMap<ReportedLease, LockHoldMessage>();
  private readonly service: string | undefined;

  /** @param shown returns how a key is shown in messages */
  constructor(
    service: string,
    private readonly shown: (key: string) => string = (key) => key,
  ) {
    this.service = service === '' ? undefined : service;
  }

  /** Traces a call that acquires. Call it only if the channel has subscribers. */
  acquire(keys: readonly KeyOfCall[], call: LockCall, acquire: () => Promise<Lease>): Promise<Lease> {
    const { label, waitMs } = call;
    const names = keys.map((one) => (typeof one === 'string' ? one : one.key));
    const kind = kindIn(keys, names[0] ?? '') ?? call.kind;
    return acquisitions.tracePromise(acquire, {
      ...{ kind, label, waitMs, service: this.service },
      keys: names.map((key) => this.shown(key)),
    });
  }

  /** Runs a section, and traces it if the channel has subscribers. */
  inSection<T>(
    open: Section,
    section: (lease: Lease) => T | PromiseLike<T>,
    lease: Lease,
  ): T | PromiseLike<T> {
    if (!sections.hasSubscribers) return runInSection(open, section, lease);
    const { hold, label } = lease.parts[0]!;
    return sections.tracePromise(async () => runInSection(open, section, lease), {
      ...{ kind: hold.claim.kind, label, lease, service: this.service },
      keys: lease.keys.map((key) => this.shown(key)),
    });
  }

  holdBegan(hold: Hold, lease: ReportedLease): void {
    if (!holdsBegan.hasSubscribers) return;
    const message = this.messageOf(hold, lease);
    this.holds.set(lease, message);
    holdsBegan.publish(message);
  }

  holdEnded(hold: Hold, lease: ReportedLease, heldMs: number, lost: LossReason | undefined): void {
    if (!holdsEnded.hasSubscribers) return;
    const message = this.holds.get(lease) ?? this.messageOf(hold, lease);
    message.heldMs = heldMs;
    if (lost !== undefined) message.lost = lost;
    holdsEnded.publish(message);
  }

  storeDown(cause: unknown): void {
    if (stores.hasSubscribers) stores.publish({ up: false, service: this.service, cause });
  }

  storeUp(downMs: number): void {
    if (stores.hasSubscribers) stores.publish({ up: true, service: this.service, downMs });
  }

  private messageOf({ key, claim }: Hold, { label }: ReportedLease): LockHoldMessage {
    return { key: this.shown(key), kind: claim.kind, label, service: this.service };
  }
}
