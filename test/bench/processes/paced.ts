import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../measure/clock.js';
import { Sections, type RegisterUse } from '../measure/sections.js';
import type { Style } from '../subjects/subject.js';
import type { Served } from './load.js';
import { settledWithin } from './settled.js';

/** Calls that arrive one after the other at a fixed pace, whether or not earlier ones are done: as requests do. */
export interface PacedLoad {
  /** Calls for each second. */
  readonly perSecond: number;
  readonly forMs: number;
  readonly keys: { readonly one: string } | { readonly among: number };
  readonly workMs: number;
  readonly startAt: number;
  readonly register?: RegisterUse;
  readonly graceMs: number;
}

export interface PacedResult extends Served {
  /** From the moment a call was due until its section began, for each one that got there. */
  readonly waitsMs: readonly number[];
}

/**
 * Calls are due on a schedule and their waits count from there: a process that is too busy to call in time does not
 * look better for it.
 */
export const runPaced = async (style: Style, load: PacedLoad): Promise<PacedResult> => {
  const { perSecond, forMs, keys, workMs, graceMs } = load;
  const sections = new Sections(load.register);
  const waitsMs: number[] = [];
  const calls: Promise<void>[] = [];
  let waiting = 0;

  await sleep(Math.max(0, load.startAt - monotonicMs()));
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const everyMs = 1_000 / perSecond;

  const call = async (n: number): Promise<void> => {
    const dueAt = startedAt + n * everyMs;
    const key = 'one' in keys ? keys.one : `paced-${n % keys.among}`;
    waiting++;
    try {
      await style(key, (lease) => {
        waitsMs.push(performance.now() - dueAt);
        return sections.run(key, lease?.fencingToken, () => sleep(workMs));
      });
    } catch (error) {
      sections.failed(error);
    }
    waiting--;
  };

  const total = Math.floor(forMs / everyMs);
  for (let n = 0; n < total;) {
    while (n < total && startedAt + n * everyMs <= performance.now()) calls.push(call(n++));
    await sleep(1);
  }
  await settledWithin(calls, graceMs);
  const cpu = process.cpuUsage(cpuBefore);
  return {
    waitsMs,
    cpuMs: (cpu.user + cpu.system) / 1_000,
    ...sections.close(),
    unfinished: waiting,
  };
};
