import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../measure/clock.js';
import { Sections, type RegisterUse } from '../measure/sections.js';
import type { Mode, Section, Style } from '../subjects/subject.js';
import { settledWithin } from './settled.js';

/** What a process has its callers do: each one acquires, works, releases, and begins again until the time is over. */
export interface Load {
  readonly callers: number;
  readonly forMs: number;
  /**
   * `free`: every caller has its own keys. `one`: the key that all callers request. `among`: the number of keys from
   * which each call draws one.
   */
  readonly keys: 'free' | { readonly one: string } | { readonly among: number };
  /** What all keys begin with. */
  readonly prefix?: string;
  /** How long a section waits for a timer, as for a database; 0 does nothing. No section waits after the end of the time. */
  readonly workMs: number;
  /** When to begin, on the monotonic clock that all processes share. Default: now. */
  readonly startAt?: number;
  /** Where exclusion across processes is checked; within the process it always is. */
  readonly register?: RegisterUse;
  /** How long those who still wait when the time is over may take. Default: 60 s. */
  readonly graceMs?: number;
  /**
   * Sections may be together, as this says: no process can see alone whether too many are. They are noted, for who runs
   * the load to look at.
   */
  readonly shared?: Shared;
  /** Whether to note when each section began and ended. */
  readonly noteTimes?: boolean;
  /** Whether to note how long each call took. */
  readonly noteCalls?: boolean;
}

/** The number of sections at once, or the number of writers in each process: its first callers write, all others read. */
export type Shared = { readonly atOnce: number } | { readonly writers: number };

/** When a section began and ended, on the clock that all processes share, and what its caller wanted. */
export type Noted = readonly [beganAt: number, endedAt: number, mode?: Mode];

/** What callers came to, whatever they did. */
export interface Served {
  /** All sections, including sections whose callers still waited at the end of the time. */
  readonly sections: number;
  readonly cpuMs: number;
  /** Sections that were not alone, or came with a stale token. */
  readonly violations: number;
  /** Calls that ended with an error, the message of the first one, and callers who still waited in the end. */
  readonly failures: number;
  readonly firstFailure?: string;
  readonly unfinished: number;
}

export interface LoadResult extends Served {
  /** Sections that began within the time, for each caller. */
  readonly served: readonly number[];
  /** From the start until the last caller was done. */
  readonly elapsedMs: number;
  /** Time of the load's window in which a section ran. */
  readonly busyMs: number;
  readonly longestWaitMs: number;
  /** Empty unless asked for. */
  readonly times: readonly Noted[];
  /** How long each call took, in ms; empty unless asked for. */
  readonly callsMs: readonly number[];
}

/** A caller of free keys goes round these many. */
export const KEYS_PER_CALLER = 16;
const GRACE_MS = 60_000;
/** After an error, so that a subject that fails at once does not fail a million times. */
const AFTER_FAILURE_MS = 10;

const keyOf = ({ keys, prefix = '' }: Load, caller: number, n: number): string => {
  if (keys === 'free') return `${prefix}free-${caller}-${n % KEYS_PER_CALLER}`;
  return 'one' in keys ? prefix + keys.one : `${prefix}any-${Math.floor(Math.random() * keys.among)}`;
};

const modeOf = ({ shared }: Load, caller: number): Mode =>
  shared && 'writers' in shared && caller >= shared.writers ? 'read' : 'write';

export const runLoad = async (style: Style, load: Load): Promise<LoadResult> => {
  const { callers, forMs, workMs, graceMs = GRACE_MS } = load;
  const sections = new Sections(load.register);
  const served = new Array<number>(callers).fill(0);
  let busyMs = 0;
  /** Since when each caller waits; undefined while it does not. */
  const requestedAt = new Array<number | undefined>(callers).fill(undefined);
  let longestWaitMs = 0;
  const times: Noted[] = [];
  const callsMs: number[] = [];
  const noteTimes = load.noteTimes === true || load.shared !== undefined;

  if (load.startAt !== undefined) await sleep(Math.max(0, load.startAt - monotonicMs()));
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const endsAt = startedAt + forMs;

  const work = async (enteredAt: number, mode: Mode): Promise<void> => {
    const beganAt = noteTimes ? monotonicMs() : 0;
    // Without work, still one turn of the event loop, in which another caller could get in.
    await (workMs > 0 && enteredAt < endsAt ? sleep(workMs) : undefined);
    if (noteTimes) times.push([beganAt, monotonicMs(), mode]);
    busyMs += Math.max(0, Math.min(performance.now(), endsAt) - enteredAt);
  };

  let done = 0;
  const call = async (caller: number): Promise<void> => {
    let key = '';
    const mode = modeOf(load, caller);
    const section: Section = (lease) => {
      const now = performance.now();
      longestWaitMs = Math.max(longestWaitMs, now - (requestedAt[caller] ?? now));
      requestedAt[caller] = undefined;
      if (now < endsAt) served[caller]!++;
      const run = (): Promise<void> => work(now, mode);
      return load.shared ? sections.runShared(run) : sections.run(key, lease?.fencingToken, run);
    };
    for (let n = 0; performance.now() < endsAt; n++) {
      key = keyOf(load, caller, n);
      // Whose call failed without a section still waits.
      requestedAt[caller] ??= performance.now();
      const calledAt = load.noteCalls ? performance.now() : 0;
      try {
        await style(key, section, mode);
        if (load.noteCalls) callsMs.push(performance.now() - calledAt);
      } catch (error) {
        sections.failed(error);
        await sleep(AFTER_FAILURE_MS);
      }
    }
    done++;
  };

  await settledWithin(
    served.map((_none, caller) => call(caller)),
    forMs + graceMs,
  );
  const elapsedMs = performance.now() - startedAt;
  const cpu = process.cpuUsage(cpuBefore);
  // A caller that still waits has waited for at least this long.
  const now = performance.now();
  for (const since of requestedAt) longestWaitMs = Math.max(longestWaitMs, now - (since ?? now));
  return {
    served,
    elapsedMs,
    busyMs,
    longestWaitMs,
    times,
    callsMs,
    cpuMs: (cpu.user + cpu.system) / 1_000,
    ...sections.close(),
    unfinished: callers - done,
  };
};
