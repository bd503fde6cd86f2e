import type { EventOf, EventType, HistoryEvent, Mode } from './history.js';
import { joined, lengthOf, without, type Span } from './spans.js';

/** One call for a lock, from the question to the lease or the refusal. */
export interface Call {
  readonly requested: EventOf<'call'>;
  aborted: number | undefined;
  granted: EventOf<'granted'> | undefined;
  refused: EventOf<'refused'> | undefined;
  /** When it was over; Infinity when it never was. */
  end: number;
}

/** One lease, as its caller saw it. */
export interface LeaseSeen {
  readonly id: string;
  readonly process: string;
  readonly granted: EventOf<'granted'>;
  announced: number;
  /** Since when it reads what it was given to write; Infinity: never. */
  readsFrom: number;
  ended: number;
  /** What it believed about its keys, oldest first. */
  readonly beliefs: EventOf<'believes'>[];
}

/** One caller that believed it had a key. */
export interface Belief extends Span {
  readonly key: string;
  readonly token: number;
  /** Of a permit. */
  readonly owner: string | undefined;
  readonly lease: LeaseSeen;
}

/** How many permits a key has: the least and the greatest number that anybody has said. */
export interface Limits {
  readonly min: number;
  readonly max: number;
}

export interface Request extends Span {
  readonly process: string;
  readonly what: string;
  readonly keys: readonly string[];
  /** Of permits: whose. */
  readonly owners: readonly string[] | undefined;
  /** Of read-write locks. */
  readonly mode: Mode | undefined;
  /** Undefined when it was never answered. */
  readonly outcome: string | undefined;
}

/** How a call takes a key of a read-write lock; undefined for every other lock. */
export const modeOf = ({ mode, modes }: Call['requested'], key: string): Mode | undefined =>
  modes?.[key] ?? mode;

/** `until`, later by the time in which nothing could happen. */
const postponed = (at: number, until: number, stopped: readonly Span[]): number => {
  let end = until;
  for (const { from, to } of stopped) if (to > at && from < end) end += to - Math.max(from, at);
  return end;
};

/** What happened, sorted out for the rules. */
export class Past {
  readonly calls = new Map<string, Call>();
  readonly leases = new Map<string, LeaseSeen>();
  readonly requests: Request[] = [];
  /** The keys that are permits. */
  readonly limits = new Map<string, Limits>();
  /** The keys that are read-write locks. */
  readonly readWrite = new Set<string>();
  /** When the process was gone; it believes and awaits nothing after. */
  private readonly crashes = new Map<string, number>();
  private readonly frozen = new Map<string, Span[]>();
  private readonly troubled = new Map<string, Span[]>();
  private readonly unprotected: (Span & { readonly key: string | undefined })[] = [];
  private readonly byType = new Map<EventType, HistoryEvent[]>();
  private readonly beliefsOfKeys = new Map<string, Belief[]>();
  /** When the history ends. */
  readonly end: number;

  constructor(
    /** They have to be in order. */
    readonly events: readonly HistoryEvent[],
  ) {
    this.end = events.at(-1)?.at ?? 0;
    for (const event of events) {
      const same = this.byType.get(event.type);
      if (same) same.push(event);
      else this.byType.set(event.type, [event]);
    }
    this.readProcesses();
    this.readCalls();
    this.readLeases();
    this.readRequests();
  }

  all<T extends EventType>(type: T): readonly EventOf<T>[] {
    return (this.byType.get(type) ?? []) as EventOf<T>[];
  }

  crashedAt(process: string): number {
    return this.crashes.get(process) ?? Infinity;
  }

  /** The moment itself, or when the process went on if it stood still then. */
  awakeAt(process: string, moment: number): number {
    const stopped = this.frozen.get(process)?.find(({ from, to }) => from <= moment && moment < to);
    return stopped ? stopped.to : moment;
  }

  /**
   * The moment itself, or when the process stopped if it went on just then: it may have been in the middle of something.
   * `uninterrupted`: only where that is certain.
   */
  begunAt(process: string, moment: number, where?: 'uninterrupted'): number {
    // One stop may follow upon another: what ran in between ran at that moment.
    const stopped = this.all('frozen').find(
      (one) =>
        one.process === process &&
        one.until <= moment &&
        moment - one.until < 0.01 &&
        (where === undefined || one.uninterrupted === true),
    );
    return stopped ? stopped.at : moment;
  }

  /** How much of a time the process could run. */
  unblockedMs(process: string, span: Span): number {
    return span.to <= span.from ? 0 : lengthOf(without(span, this.frozen.get(process) ?? []));
  }

  /** The times in which a request of the process for one of the keys was under way. */
  requestSpans(process: string, keys: readonly string[]): Span[] {
    return joined(
      this.requests.filter((one) => one.process === process && one.keys.some((key) => keys.includes(key))),
    );
  }

  /** The parts of a time in which the process could run and nothing troubled it. */
  calm(process: string, span: Span): Span[] {
    return without(span, this.troubled.get(process) ?? []);
  }

  /**
   * The parts of a time in which the store stood by what it had said about the key. Of a hold that was taken at
   * `since`: what was done to the key before does not concern it.
   */
  protectedParts(key: string, span: Span, since = -Infinity): Span[] {
    const spans = this.unprotected.filter(
      (one) => one.key === undefined || (one.key === key && one.from >= since),
    );
    return spans.length === 0 ? [span] : without(span, joined(spans));
  }

  /** Beliefs by key, each list by its beginning. */
  get beliefs(): ReadonlyMap<string, readonly Belief[]> {
    return this.beliefsOfKeys;
  }

  private readProcesses(): void {
    const names = new Set<string>();
    for (const list of this.byType.values()) {
      for (const event of list) if ('process' in event && event.process) names.add(event.process);
    }
    for (const { process, at, how } of this.all('gone')) if (how === 'crashed') this.crashes.set(process, at);
    for (const name of names) {
      const frozen = this.all('frozen').filter(({ process }) => process === name);
      const trouble = this.all('trouble').filter(({ process }) => process === undefined || process === name);
      const stopped = joined(frozen.map(({ at, until }) => ({ from: at, to: until })));
      const longer = trouble.map(({ at, until }) => ({ from: at, to: postponed(at, until, stopped) }));
      this.frozen.set(name, stopped);
      this.troubled.set(name, joined([...stopped, ...longer]));
    }
    for (const { key, at, until } of this.all('unprotected')) {
      this.unprotected.push({ key, from: at, to: until });
    }
  }

  private readCalls(): void {
    for (const requested of this.all('call')) {
      const end = this.crashedAt(requested.process);
      this.calls.set(requested.call, {
        requested,
        aborted: undefined,
        granted: undefined,
        refused: undefined,
        end,
      });
      this.readLimits(requested);
      for (const key of requested.keys) if (modeOf(requested, key)) this.readWrite.add(key);
    }
    for (const { call, at } of this.all('abort')) this.callOf(call).aborted ??= at;
    for (const event of this.all('granted')) {
      const call = this.callOf(event.call);
      call.granted = event;
      call.end = event.at;
    }
    for (const event of this.all('refused')) {
      const call = this.callOf(event.call);
      call.refused = event;
      call.end = event.at;
    }
  }

  private readLimits({ keys, permits }: EventOf<'call'>): void {
    if (permits === undefined) return;
    for (const key of keys) {
      const { min = Infinity, max = -Infinity } = this.limits.get(key) ?? {};
      this.limits.set(key, {
        min: Math.min(min, permits ?? min),
        max: Math.max(max, permits ?? max),
      });
    }
  }

  private callOf(name: string): Call {
    const call = this.calls.get(name);
    if (!call) throw new Error(`the history has no call "${name}"`);
    return call;
  }

  private readLeases(): void {
    for (const granted of this.all('granted')) {
      const { lease: id, process } = granted;
      const crash = this.crashedAt(process);
      this.leases.set(id, {
        id,
        process,
        granted,
        announced: Infinity,
        readsFrom: Infinity,
        ended: crash,
        beliefs: [],
      });
    }
    for (const { lease, at } of this.all('announced')) {
      const seen = this.leaseOf(lease);
      seen.announced = Math.min(seen.announced, at);
    }
    for (const { lease, process, at } of this.all('downgrades')) {
      const seen = this.leaseOf(lease);
      // The request is sent before this is written down.
      seen.readsFrom = Math.min(seen.readsFrom, this.begunAt(process, at, 'uninterrupted'));
    }
    for (const { lease, at } of this.all('ended')) {
      const seen = this.leaseOf(lease);
      seen.ended = Math.min(seen.ended, at);
    }
    for (const event of this.all('believes')) this.leaseOf(event.lease).beliefs.push(event);
    for (const lease of this.leases.values()) {
      for (const part of lease.granted.parts) this.addBeliefs(lease, part);
    }
    for (const list of this.beliefsOfKeys.values()) list.sort((a, b) => a.from - b.from);
  }

  /** A belief that had ended and came back is two. */
  private addBeliefs(lease: LeaseSeen, { key, token, owner }: LeaseSeen['granted']['parts'][number]): void {
    const over = Math.min(lease.ended, lease.announced);
    let list = this.beliefsOfKeys.get(key);
    if (!list) this.beliefsOfKeys.set(key, (list = []));
    let open: { from: number; to: number } | undefined;
    for (const event of lease.beliefs) {
      if (event.key !== key) continue;
      const to = Math.min(event.until, over);
      if (open && event.at <= open.to) open.to = to;
      else if (event.at < to) list.push((open = { from: event.at, to, key, token, owner, lease } as Belief));
    }
  }

  private leaseOf(id: string): LeaseSeen {
    const lease = this.leases.get(id);
    if (!lease) throw new Error(`the history has no lease "${id}"`);
    return lease;
  }

  private readRequests(): void {
    const ends = new Map(this.all('reply').map((event) => [event.request, event]));
    for (const { request, process, what, keys, owners, mode, at } of this.all('request')) {
      const end = ends.get(request);
      const to = end?.at ?? this.crashedAt(process);
      this.requests.push({ process, what, keys, owners, mode, from: at, to, outcome: end?.outcome });
    }
  }
}
