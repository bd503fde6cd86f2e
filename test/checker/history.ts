/**
 * The history of a run: what the checker reads. Plain data, one event per line as JSON, so that processes of a fault
 * laboratory can write it as well as a simulation can. Whoever writes it says what happened; what it means is for the
 * checker.
 *
 * `at` is in ms on one clock for all, that of whoever puts the history together. Events may be written in any order;
 * `inOrder` sorts them. Names of calls, leases and requests are unique in the whole history. Keys are final keys.
 * Times that have no end are null, since JSON has no Infinity.
 */

/** How a read-write lock is taken. */
export type Mode = 'read' | 'write';

interface Of<T extends string> {
  readonly type: T;
  readonly at: number;
}

interface By<T extends string> extends Of<T> {
  /** The process it happened in. */
  readonly process: string;
}

/** What is known of an error that a caller got. */
export interface ErrorSeen {
  readonly name: string;
  /** Undefined for an error that is not of the library. */
  readonly code: string | undefined;
  readonly hasCause: boolean;
  readonly message: string;
}

/** A caller asks for a lock. It ends with `granted` or `refused`. */
export interface CallEvent extends By<'call'> {
  readonly call: string;
  readonly keys: readonly string[];
  /** Null: waits without end. */
  readonly waitMs: number | null;
  /** The style of the caller (`withLock`, `tryAcquire` …); for the reader. */
  readonly style: string;
  /** How long the hold is to outlast early work; local waiters wait for that too. */
  readonly holdAtLeastMs?: number;
  /** For how long at a time the store is asked to keep its hold, at the most: a fixed lease, or the watchdog's time. */
  readonly leaseMs?: number;
  /** Asks for one permit of so many; null leaves the number to the store. Undefined for a lock. */
  readonly permits?: number | null;
  /** How a read-write lock is taken; undefined for every other lock. */
  readonly mode?: Mode;
  /** Of keys that are taken in modes of their own. */
  readonly modes?: Readonly<Record<string, Mode>>;
}

/** The caller's signal was aborted while it waited. */
export interface AbortEvent extends By<'abort'> {
  readonly call: string;
}

export interface GrantedEvent extends By<'granted'> {
  readonly call: string;
  readonly lease: string;
  readonly parts: readonly {
    readonly key: string;
    readonly token: number;
    /** Of a permit and of a read lock, which have no token: by what name the store knows it. */
    readonly owner?: string;
    /** The lease that encloses this one and whose hold it shares; undefined when it has a hold of its own. */
    readonly sharedWith?: string;
  }[];
}

/** The call ended without a lease. `error` undefined: `tryAcquire` answered null. */
export interface RefusedEvent extends By<'refused'> {
  readonly call: string;
  readonly error?: ErrorSeen;
}

/**
 * From now on, unless `announced` or `ended` comes before, the caller believes that it has the key until `until`:
 * `remainingMs()` is above 0 until then. Written when the lease is granted and whenever `until` has changed.
 */
export interface BelievesEvent extends By<'believes'> {
  readonly lease: string;
  readonly key: string;
  readonly until: number;
}

/**
 * Somebody acts on the lease's being valid: a section begins in it, `remainingMs()` is above 0, an extension asked for
 * after its end is granted.
 */
export interface ClaimsEvent extends By<'claims'> {
  readonly lease: string;
  readonly what: 'section' | 'remainingMs' | 'extend' | 'verify';
}

/** The caller asks for its lease to last at least so long from now on. */
export interface ExtendsEvent extends By<'extends'> {
  readonly lease: string;
  readonly ms: number;
}

/** The caller of a write lock asks to read on with it: from here on others may read beside it. */
export interface DowngradesEvent extends By<'downgrades'> {
  readonly lease: string;
}

/** `lease.signal` was aborted. */
export interface AnnouncedEvent extends By<'announced'> {
  readonly lease: string;
}

/** The caller gives the lease up: it calls `release`, or its section ends. */
export interface EndedEvent extends By<'ended'> {
  readonly lease: string;
}

/** What `release`, `extend`, `forceUnlock` … answered; for the reader, but for the error. */
export interface ResultEvent extends By<'result'> {
  readonly doing: string;
  readonly lease?: string;
  readonly result?: string;
  readonly error?: ErrorSeen;
}

/** A caller uses an object without a holder. It ends with `used`. Names of uses are unique in the whole history. */
export interface UsesEvent extends By<'uses'> {
  readonly use: string;
  readonly object: 'semaphore' | 'latch';
  readonly key: string;
  /** `take` and `add` permits, `countDown` and `wait` for the latch; `set` and `look` at the number of either. */
  readonly what: 'set' | 'take' | 'add' | 'countDown' | 'wait' | 'look';
  /** How many permits, or how many there are to be counted down. */
  readonly amount: number;
  /** Of `take` and `wait`. */
  readonly waitMs?: number;
}

/** The caller's signal was aborted while its use of an object was under way. */
export interface CalledOffEvent extends By<'called off'> {
  readonly use: string;
}

export interface UsedEvent extends By<'used'> {
  readonly use: string;
  /** Whether it was done, or what number was found; undefined with an error. */
  readonly result?: boolean | number;
  readonly error?: ErrorSeen;
  /** Nobody can tell whether it was done. */
  readonly unknown?: true;
}

/** The core sends a request to the store; `reply` with the same name ends it. */
export interface RequestEvent extends By<'request'> {
  readonly request: string;
  readonly what: string;
  readonly keys: readonly string[];
  /** Of permits: whose, in the order of the keys. Neither the key nor the owner tells which process has them. */
  readonly owners?: readonly string[];
  /** Of read-write locks. */
  readonly mode?: Mode;
}

export interface ReplyEvent extends By<'reply'> {
  readonly request: string;
  readonly outcome: string;
}

/**
 * The register, a process of its own, was read or written with a fencing token. A read raises the fence too: it shows
 * that a later holder has begun. `base` is the version a write is based on, `version` the one after this event.
 */
export interface RegisterEvent extends Of<'register'> {
  readonly what: 'read' | 'write';
  readonly key: string;
  readonly lease: string;
  readonly token: number;
  readonly accepted: boolean;
  readonly base?: number;
  readonly version: number;
}

/** The store gave the key to an owner, or gave its own hold to it again. Only where the store can be watched. */
export interface HoldEvent extends Of<'hold'> {
  readonly key: string;
  readonly owner: string;
  readonly token?: number;
  /** The last of the tokens that came with it, when there were several. */
  readonly lastToken?: number;
  /** Of a read-write lock: as what. */
  readonly mode?: Mode;
  /** When it ends unless it is renewed. */
  readonly until?: number;
}

/** The store made a hold last longer. Only where the store can be watched. */
export interface ArmedEvent extends Of<'armed'> {
  readonly key: string;
  readonly owner: string;
  readonly until: number;
}

/** A hold is not in the store any more. */
export interface FreeEvent extends Of<'free'> {
  readonly key: string;
  readonly owner: string;
  readonly how: 'released' | 'expired' | 'forced' | 'lost';
}

/**
 * From now until `until` the store does not promise anything about the key (all keys when undefined): it lost its
 * data, its clock jumped, or somebody forced the lock open. `until`: when the leases of that moment have run out.
 */
export interface UnprotectedEvent extends Of<'unprotected'> {
  readonly key?: string;
  readonly until: number;
  readonly why: string;
}

/** The store ended in this moment: what it did just before may have been answered, and is not in the history. */
export type UnseenEvent = Of<'unseen'>;

/**
 * Lines of waiters are as they were some time ago: until `until` there may be places in them whose owners were served, or
 * went, since then.
 */
export interface OldQueuesEvent extends Of<'old lines'> {
  readonly until: number;
}

/** Nothing of the process runs until `until`: it is stopped, or its event loop is blocked. */
export interface FrozenEvent extends By<'frozen'> {
  readonly until: number;
  /** Nothing else came in between: what the process does next, it was about to do before. */
  readonly uninterrupted?: boolean;
}

/**
 * Until `until` the process may not be reached, or may not reach the store, in time (all processes when undefined):
 * the fault itself and the time it takes to notice it and to connect again. Time in which the process stands still
 * does not count.
 */
export interface TroubleEvent extends Of<'trouble'> {
  readonly process?: string;
  readonly until: number;
  readonly what: string;
}

/** The process is gone: it crashed, or began to shut down. */
export interface GoneEvent extends By<'gone'> {
  readonly how: 'crashed' | 'shut-down';
}

/** At the end, when nothing is held and nobody waits: sizes of all that could have grown. All have to be 0. */
export interface UsageEvent extends By<'usage'> {
  readonly sizes: Readonly<Record<string, number>>;
}

/** At the end: a hold that is still in the store, of a process that is alive and idle. */
export interface LeftEvent extends By<'left'> {
  readonly key: string;
  readonly owner: string;
}

/** A promise was rejected, or something was thrown, and nobody caught it. */
export interface UnhandledEvent extends Of<'unhandled'> {
  readonly message: string;
}

/** An app of a failover acquired a key, and the lock is where writes are accepted. */
export interface ServedEvent extends By<'served'> {
  readonly call: string;
}

/**
 * Servers failed or changed places, and apps had to acquire keys again. `at`: from when on. Apps ask the servers that
 * accept writes, as a connection of the laboratory sees it, and not those of before.
 */
export interface FailoverEvent extends Of<'failover'> {
  /** The fault. */
  readonly what: string;
  /** When no server accepted writes, or another one began to; in order. */
  readonly outages: readonly { readonly from: number; readonly to: number }[];
  /** How long after the last of them each app may take. */
  readonly limitMs: number;
  readonly apps: readonly {
    readonly process: string;
    /** What connection the app had to the servers that failed, and when it asks for keys. */
    readonly connection: string;
  }[];
}

/** For the reader only. */
export interface NoteEvent extends Of<'note'> {
  readonly process?: string;
  readonly text: string;
}

export type HistoryEvent =
  | CallEvent
  | AbortEvent
  | GrantedEvent
  | RefusedEvent
  | BelievesEvent
  | ClaimsEvent
  | ExtendsEvent
  | DowngradesEvent
  | AnnouncedEvent
  | EndedEvent
  | ResultEvent
  | UsesEvent
  | CalledOffEvent
  | UsedEvent
  | RequestEvent
  | ReplyEvent
  | RegisterEvent
  | HoldEvent
  | ArmedEvent
  | FreeEvent
  | UnprotectedEvent
  | UnseenEvent
  | OldQueuesEvent
  | FrozenEvent
  | TroubleEvent
  | GoneEvent
  | UsageEvent
  | LeftEvent
  | UnhandledEvent
  | ServedEvent
  | FailoverEvent
  | NoteEvent;

export type EventType = HistoryEvent['type'];
export type EventOf<T extends EventType> = Extract<HistoryEvent, { readonly type: T }>;

/** By time; what happened at the same moment keeps its order. */
export const inOrder = (events: readonly HistoryEvent[]): HistoryEvent[] =>
  [...events].sort((a, b) => a.at - b.at);

/** The history as text, one event in a line. */
export const historyText = (events: readonly HistoryEvent[]): string =>
  events.map((event) => JSON.stringify(event)).join('\n');

/** Describes an error for a history. */
export const errorSeen = (error: unknown): ErrorSeen => {
  if (!(error instanceof Error)) {
    return { name: typeof error, code: undefined, hasCause: false, message: String(error) };
  }
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    code: typeof code === 'string' ? code : undefined,
    hasCause: error.cause !== undefined,
    message: error.message,
  };
};
