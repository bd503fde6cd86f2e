import { errorSeen, type EventOf, type EventType, type HistoryEvent } from '../../../checker/history.js';
import type { Hold } from '../../../../lib/core/lease/hold.js';
import type { Lease } from '../../../../lib/core/lease/lease.js';
import type { Session } from '../../../../lib/core/seam/lease-model.js';
import type { Life } from '../../../../lib/stores/zookeeper/life.js';
import type { HistoryWriter } from '../../history/history-file.js';
import { labNow } from '../../history/lab-clock.js';

type Own<T extends EventType> = T extends EventType ? Omit<EventOf<T>, 'at' | 'process'> : never;
/** An event of this process; when and where are added. */
export type OwnEvent = Own<EventType>;

/** Renewals that move the end by less than this are not worth a line. */
const MOVED_MS = 1;
/** How often the end of a lease is read again, on a machine that is too busy. */
const READINGS = 5;
/** How often it is written down how long leases of a session last, in ms. */
const SESSION_SEEN_EVERY_MS = 100;
/** A step that took so much longer than the work in it waited for a processor. */
const UNSERVED_MS = 1;

/** What time it is in the history, and for how long this process has worked so far; both in ms. */
export interface Clocks {
  now(): number;
  workedMs(): number;
}

const CLOCKS: Clocks = {
  now: labNow,
  workedMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
};

/** A lease that its caller has not ended. */
export class OpenLease {
  readonly believed = new Map<string, number>();

  constructor(
    readonly id: string,
    readonly lease: Lease,
    readonly holds: ReadonlySet<Hold>,
  ) {}
}

/** Writes down what the callers of a worker see. */
export class Recorder {
  private readonly open = new Set<OpenLease>();
  private readonly sessions = new WeakSet<Session>();
  private calls = 0;
  private leases = 0;
  /** The last thing that happened in this turn of the event loop. */
  private last: { readonly at: number; readonly workedMs: number } | undefined;
  private tickEnds = false;

  constructor(
    readonly process: string,
    private readonly file: HistoryWriter,
    private readonly clocks: Clocks = CLOCKS,
  ) {}

  write(event: OwnEvent): void {
    const before = this.last;
    const at = this.clocks.now();
    this.file.write({ ...event, at, process: this.process } as HistoryEvent);
    this.mark(at);
    this.writeUnserved(before);
  }

  /** The next event of this turn of the event loop follows upon this moment. */
  mark(at = this.clocks.now()): void {
    this.last = { at, workedMs: this.clocks.workedMs() };
    if (this.tickEnds) return;
    this.tickEnds = true;
    setImmediate(() => {
      this.tickEnds = false;
      this.last = undefined;
    });
  }

  /**
   * Writes down when the process had no processor since the last event of this turn: what the library saw then is as
   * old as that. A timer notices it too late, and cannot tell it from work.
   */
  private writeUnserved(before: typeof this.last): void {
    if (!before || !this.last) return;
    const ranMs = this.last.workedMs - before.workedMs;
    const { at: until } = this.last;
    if (until - before.at - ranMs > UNSERVED_MS)
      this.writeSpan({ type: 'frozen', at: before.at, until, uninterrupted: true });
  }

  /** What went on until now, since a moment in the past. */
  writeSpan(event: Omit<EventOf<'frozen'>, 'process'>): void {
    this.file.write({ ...event, process: this.process });
  }

  call(about: Omit<EventOf<'call'>, 'at' | 'process' | 'type' | 'call'>): string {
    const call = `${this.process}.c${++this.calls}`;
    this.write({ type: 'call', call, ...about });
    return call;
  }

  /** `around`: the leases of the sections that the caller runs in, innermost first. */
  granted(call: string, lease: Lease, around: readonly OpenLease[]): OpenLease {
    const id = `${this.process}.L${++this.leases}`;
    const parts = lease.parts.map(({ finalKey, hold, outer }) => {
      const sharedWith = outer && around.find(({ holds }) => holds.has(hold))?.id;
      const isShared = hold.claim.kind === 'permit' || hold.claim.kind === 'read';
      const owner = isShared ? { owner: hold.claim.owner } : {};
      return {
        key: finalKey,
        token: hold.token ?? 0,
        ...owner,
        ...(sharedWith !== undefined && { sharedWith }),
      };
    });
    this.write({ type: 'granted', call, lease: id, parts });
    const open = new OpenLease(id, lease, new Set(lease.parts.map(({ hold }) => hold)));
    this.open.add(open);
    for (const { session } of open.holds)
      if (session && !this.sessions.has(session)) this.follow(session as Life);
    this.believe(open);
    const announced = (): void => {
      if (this.open.has(open)) this.write({ type: 'announced', lease: id });
    };
    // A process that was stopped just now may find its lease over already.
    if (lease.signal.aborted) announced();
    else lease.signal.addEventListener('abort', announced);
    return open;
  }

  /** Takes the lease for valid. */
  claims({ id }: OpenLease, what: EventOf<'claims'>['what']): void {
    this.write({ type: 'claims', lease: id, what });
  }

  extends({ id }: OpenLease, ms: number): void {
    this.write({ type: 'extends', lease: id, ms });
  }

  /** From now on others may read beside it. */
  downgrades({ id }: OpenLease): void {
    this.write({ type: 'downgrades', lease: id });
  }

  isOpen(open: OpenLease): boolean {
    return this.open.has(open);
  }

  refused(call: string, error?: unknown): void {
    this.write({ type: 'refused', call, ...(error !== undefined && { error: errorSeen(error) }) });
  }

  ended(open: OpenLease): void {
    if (this.open.delete(open)) this.write({ type: 'ended', lease: open.id });
  }

  returned(open: OpenLease, doing: string, outcome: { result?: string; error?: unknown }): void {
    const { result, error } = outcome;
    const seen = error === undefined ? undefined : errorSeen(error);
    this.write({ type: 'result', doing, lease: open.id, result, ...(seen && { error: seen }) });
  }

  /** Looks whether leases have become longer: after a renewal was answered. */
  refresh(): void {
    for (const open of this.open) this.believe(open);
  }

  /** Each reply of a server moves the end of all holds of a session. */
  private follow(session: Life): void {
    this.sessions.add(session);
    const looking = setInterval(() => this.refresh(), SESSION_SEEN_EVERY_MS).unref();
    session.over.addEventListener('abort', () => clearInterval(looking));
    // Between two looks, what had nearly come to its end may go on.
    for (const name of ['connected', 'heard'] as const) {
      const move = session[name].bind(session);
      session[name] = (sentAt, repliedAt) => {
        const isNearlyOver = session.validUntil - repliedAt < 2 * SESSION_SEEN_EVERY_MS;
        move(sentAt, repliedAt);
        if (isNearlyOver) this.refresh();
      };
    }
  }

  /** How long a lease lasts, and at which moment. The process may have no processor between both readings. */
  private left(lease: Lease): { leftMs: number; at: number } {
    for (let tries = 1; ; tries++) {
      const at = this.clocks.now();
      const leftMs = lease.remainingMs();
      if (this.clocks.now() - at <= MOVED_MS || tries === READINGS) return { leftMs, at };
    }
  }

  private believe({ id, lease, believed }: OpenLease): void {
    const { leftMs, at } = this.left(lease);
    const until = Math.round((at + leftMs) * 1_000) / 1_000;
    for (const { finalKey: key } of lease.parts) {
      const before = believed.get(key);
      if (leftMs === 0 ? believed.size > 0 : before !== undefined && Math.abs(until - before) < MOVED_MS)
        continue;
      believed.set(key, until);
      this.write({ type: 'believes', lease: id, key, until });
    }
  }
}
