import type { Mode } from '../../checker/history.js';
import type { MeetingTask, PermitsTask } from '../../checker/object-user.js';
import type { Mood } from '../server/sim-server.js';

/** All that is decided before a run: plain data, so that it can be printed and made smaller. Times are in ms. */
export interface Plan {
  readonly seed: number;
  readonly settings: PlanSettings;
  readonly processes: readonly ProcessPlan[];
  readonly faults: readonly Fault[];
}

export interface PlanSettings {
  readonly watchdogMs: number;
  readonly commandTimeoutMs: number;
  /** How long anything is on its way when nothing disturbs it. */
  readonly latencyMs: readonly [number, number];
  /** Null: no limit. */
  readonly maxWaiters: number | null;
  readonly shutdownGraceMs: number;
  /** Whether clients may end each other's sessions. */
  readonly mayKill: boolean;
  /** The keys that are permits. */
  readonly permits: readonly PermitKey[];
  /** Whether callers take fair locks instead of exclusive ones. */
  readonly fair?: boolean;
  /** Whether callers take read-write locks instead of exclusive ones. */
  readonly readWrite?: boolean;
  /** The longest lease that anybody asks for. */
  readonly longestMs: number;
  /** What callers do that they should not; none: they behave. */
  readonly misdeeds: readonly Misdeed[];
}

/** A key with several permits, and what callers say their number is, each of them one of these; the first is a number. */
export interface PermitKey {
  readonly key: string;
  readonly says: readonly (number | null)[];
}

export type Misdeed =
  'release' | 'release-beside' | 'extend' | 'block' | 'force' | 'answers-at-once' | 'run' | 'shut-down';

export interface ProcessPlan {
  readonly name: string;
  /** How fast its clock runs. */
  readonly rate: number;
  readonly callers: readonly CallerPlan[];
  /** What listeners of events do, once. */
  readonly listeners?: readonly ListenerPlan[];
}

/** At this event of its process, for the so-and-so-many-eth time: whatever key it is about. */
export interface ListenerPlan {
  readonly on: 'acquired' | 'released' | 'lost';
  readonly nth: number;
  /** Forces the key open, blocks the event loop, or gives back a lease that somebody in this process has. */
  readonly do: 'forceUnlock' | 'block' | 'release';
}

export interface CallerPlan {
  readonly startAt: number;
  readonly steps: readonly Step[];
}

/** What an app has between its callers and the lock. */
export type App = 'queue' | 'batch' | 'emitter';

export type Style = 'withLock' | 'tryWithLock' | 'acquire' | 'tryAcquire' | 'run';

export interface LockStep {
  readonly do: 'lock';
  readonly style: Style;
  readonly keys: readonly string[];
  /** A permit and not a lock: how many there are, or null, which leaves that to the store. */
  readonly permits?: number | null;
  /** How a read-write lock is taken; undefined for every other lock. */
  readonly mode?: Mode;
  /** How each of the keys is taken, in their order; without it all are in the mode of the call. */
  readonly modes?: readonly Mode[];
  /** Null: without end. */
  readonly waitMs: number | null;
  readonly leaseMs?: number;
  readonly watchdogMs?: number;
  readonly abortAfterMs?: number;
  readonly holdAtLeastMs?: number;
  /** Of a nested call: its caller does not say which section it is a part of. */
  readonly ordinary?: true;
  readonly onLost?: 'throw';
  /** Of sections: their caller goes on before the release is answered. */
  readonly awaitRelease?: false;
  /** Whether the caller stops when it is told that the lock is lost; others work on. */
  readonly heedsLoss: boolean;
  readonly inside: readonly Step[];
  /** What the caller does with the lease when it is over. */
  readonly after?: readonly Step[];
}

export type Step =
  | LockStep
  | { readonly do: 'sleep'; readonly ms: number }
  /** Reads the register and writes it, for a key the caller has; `slowMs`: how long the write is on its way. */
  | { readonly do: 'update'; readonly key: string; readonly thinkMs: number; readonly slowMs: number }
  | { readonly do: 'extend'; readonly ms: number }
  /** Makes a read lock of a write lock. */
  | { readonly do: 'downgrade' }
  /** Gives the lease back while its section runs, or that of a section around it; or once more. */
  | { readonly do: 'release'; readonly up: number }
  /** Asks the lease, or that of a section around it, whether it is valid. */
  | { readonly do: 'ask'; readonly up: number }
  /** Asks the store whether the lease is valid. */
  | { readonly do: 'verify' }
  /** A section in the lease, by `lease.run`. */
  | { readonly do: 'run'; readonly inside: readonly Step[] }
  /** Does it as a task of the process, and waits for that; the task runs in the asynchronous context of another one. */
  | { readonly do: 'through'; readonly app: App; readonly step: Step }
  /** Does something in a while. */
  | { readonly do: 'later'; readonly ms: number; readonly step: Step }
  | { readonly do: 'shutDown' }
  /** All at once. */
  | { readonly do: 'siblings'; readonly steps: readonly Step[] }
  /** Nobody waits for it; it runs inside the lease, or outside of all of them. */
  | { readonly do: 'fork'; readonly detached: boolean; readonly step: Step }
  | { readonly do: 'forceUnlock'; readonly key: string }
  | { readonly do: 'inspect'; readonly key: string }
  /** Takes permits of a semaphore, works, and gives them back. */
  | ({ readonly do: 'work' } & PermitsTask)
  /** Counts a latch down, and waits for the others. */
  | ({ readonly do: 'meet' } & MeetingTask)
  /** The event loop stands still. */
  | { readonly do: 'block'; readonly ms: number }
  | { readonly do: 'fail' };

export type Role = 'command' | 'subscriber';

export type Fault =
  | { readonly kind: 'freeze'; readonly at: number; readonly process: string; readonly ms: number }
  /** At a step of the process, wherever it is in its code then. */
  | { readonly kind: 'freeze-step'; readonly process: string; readonly step: number; readonly ms: number }
  | { readonly kind: 'crash'; readonly at: number; readonly process: string }
  | { readonly kind: 'crash-step'; readonly process: string; readonly step: number }
  | { readonly kind: 'shut-down'; readonly at: number; readonly process: string }
  /** The connection breaks. With `lateMs`, what is under way to the server arrives that much later. */
  | {
      readonly kind: 'cut';
      readonly at: number;
      readonly process: string;
      readonly role: Role;
      readonly lateMs?: number;
    }
  /** The server ends the session. */
  | { readonly kind: 'kill'; readonly at: number; readonly process: string; readonly role: Role }
  /** Nothing gets through this session; with `ms` null, never again. */
  | {
      readonly kind: 'half-open';
      readonly at: number;
      readonly process: string;
      readonly role: Role;
      readonly direction: 'up' | 'down' | 'both';
      readonly ms: number | null;
    }
  /** Nothing gets through between the process and the server, on any session. */
  | { readonly kind: 'partition'; readonly at: number; readonly process: string; readonly ms: number }
  | {
      readonly kind: 'slow';
      readonly at: number;
      readonly process: string;
      readonly role: Role;
      readonly ms: number;
      readonly extraMs: number;
    }
  | { readonly kind: 'spurious-hint'; readonly at: number; readonly process: string }
  | { readonly kind: 'wall-clock'; readonly at: number; readonly process: string; readonly ms: number }
  | { readonly kind: 'server-stop'; readonly at: number; readonly ms: number }
  /** Each command takes the server so long: more commands arrive than it can serve. */
  | { readonly kind: 'server-slow'; readonly at: number; readonly ms: number; readonly eachMs: number }
  | {
      readonly kind: 'server-restart';
      readonly at: number;
      readonly downMs: number;
      readonly keepsData: boolean;
    }
  /** A replica takes over that knows nothing of the last so many ms. */
  | {
      readonly kind: 'server-failover';
      readonly at: number;
      readonly downMs: number;
      readonly behindMs: number;
    }
  | { readonly kind: 'server-flush'; readonly at: number }
  /** Somebody deletes a key. */
  | { readonly kind: 'delete'; readonly at: number; readonly key: string }
  | { readonly kind: 'server-clock'; readonly at: number; readonly ms: number }
  | { readonly kind: 'server-mood'; readonly at: number; readonly ms: number; readonly mood: Mood };

export type FaultKind = Fault['kind'];
