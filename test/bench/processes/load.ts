import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../measure/clock.js';
import { Occupancy } from '../measure/occupancy.js';
import { Register } from '../measure/register.js';
import type { Section, Style } from '../subjects/subject.js';

/** What a process has its callers do: each one acquires, works, releases, and begins again until the time is over. */
export interface Load {
  readonly callers: number;
  readonly forMs: number;
  /** `free`: every caller has keys of its own. Otherwise the one key that all callers want. */
  readonly keys: 'free' | { readonly one: string };
  /** How long a section waits for a timer, as for a database; 0 does nothing. */
  readonly workMs: number;
  /** When to begin, on the monotonic clock that all processes share. Default: now. */
  readonly startAt?: number;
  /** Where exclusion across processes is checked; within the process it always is. */
  readonly register?: { readonly path: string; readonly id: number };
}

export interface LoadResult {
  /** Sections that began within the time, for each caller. */
  readonly served: readonly number[];
  /** Sections in all; those that were waited for when the time was over are among them. */
  readonly sections: number;
  /** From the start until the last caller was done. */
  readonly elapsedMs: number;
  /** Time of the load's window in which a section ran. */
  readonly busyMs: number;
  readonly longestWaitMs: number;
  readonly cpuMs: number;
  /** Sections that were not alone, or came with a stale token. */
  readonly violations: number;
}

/** A caller of free keys goes round these many. */
const KEYS_PER_CALLER = 16;

export const runLoad = async (style: Style, load: Load): Promise<LoadResult> => {
  const register = load.register && new Register(load.register.path, load.register.id);
  const occupancy = new Occupancy();
  const served = new Array<number>(load.callers).fill(0);
  let sections = 0;
  let busyMs = 0;
  let longestWaitMs = 0;

  if (load.startAt !== undefined) await sleep(Math.max(0, load.startAt - monotonicMs()));
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const endsAt = startedAt + load.forMs;

  const work = async (key: string, token: number | undefined): Promise<void> => {
    occupancy.enter(key);
    register?.enter(token);
    const enteredAt = performance.now();
    // Without work still a turn, in which somebody else would be seen to come in.
    await (load.workMs > 0 ? sleep(load.workMs) : undefined);
    busyMs += Math.max(0, Math.min(performance.now(), endsAt) - enteredAt);
    register?.leave();
    occupancy.leave(key);
  };

  const call = async (caller: number): Promise<void> => {
    let askedAt = performance.now();
    let key = '';
    const section: Section = (lease) => {
      const now = performance.now();
      longestWaitMs = Math.max(longestWaitMs, now - askedAt);
      sections++;
      if (now < endsAt) served[caller]!++;
      return work(key, register && lease?.fencingToken);
    };
    for (let n = 0; askedAt < endsAt; n++) {
      key = load.keys === 'free' ? `free-${caller}-${n % KEYS_PER_CALLER}` : load.keys.one;
      await style(key, section);
      askedAt = performance.now();
    }
  };

  await Promise.all(served.map((_none, caller) => call(caller)));
  const elapsedMs = performance.now() - startedAt;
  const cpu = process.cpuUsage(cpuBefore);
  const violations = occupancy.overlaps + (register ? register.overlaps + register.staleTokens : 0);
  register?.close();
  return {
    served,
    sections,
    elapsedMs,
    busyMs,
    longestWaitMs,
    cpuMs: (cpu.user + cpu.system) / 1_000,
    violations,
  };
};
