import { availableParallelism } from 'node:os';
import { beforeAll, describe, expect, it } from 'vitest';
import { historyText } from '../checker/history.js';
import { FOUND_PLANS } from './plan/found-plans.js';
import { makePlan } from './plan/make-plan.js';
import type { FaultKind, Misdeed, Plan } from './plan/plan.js';
import {
  CALM_OBJECT_PLAN,
  CALM_PERMIT_PLAN,
  CALM_PLAN,
  CALM_READ_WRITE_PLAN,
  plansForEachStep,
} from './plan/step-plans.js';
import { judge } from './run/judge.js';
import { simulate } from './run/simulate.js';
import { farmSeeds, type Harvest } from './seeds/seed-farm.js';
import { reportOn } from './shrink/report.js';

/** `SIMULATION_SEEDS=30000 npx vitest run test/simulation` runs more of them, from `SIMULATION_FROM` on. */
const SEEDS = Number(process.env['SIMULATION_SEEDS'] ?? 300);
/** `SIMULATION_STEPS=all` plays each fault at each step; otherwise one fault is played at every fifth. */
const EACH_FAULT = process.env['SIMULATION_STEPS'] === 'all';
const FROM = Number(process.env['SIMULATION_FROM'] ?? 1);
/** A seed takes 20 to 60 ms, longer beside other work. */
const TIMEOUT_MS = 120_000 + SEEDS * 300;

const failures = async (plans: Iterable<Plan>): Promise<string[]> => {
  for (const plan of plans) {
    if ((await judge(plan)).violations.length > 0) return [await reportOn(plan)];
  }
  return [];
};

const seedsUpTo = (count: number): Plan[] => Array.from({ length: count }, (_, i) => makePlan(i + 1));

describe('the simulation', () => {
  it('is the same run for the same seed, byte for byte', async () => {
    for (const plan of seedsUpTo(40)) {
      const [once, again] = [await simulate(plan), await simulate(plan)];
      expect(historyText(again.events), `seed ${plan.seed}`).toBe(historyText(once.events));
    }
  });

  it('makes all go wrong that can', () => {
    const plans = seedsUpTo(1_000);
    const kinds = new Set<FaultKind>(plans.flatMap(({ faults }) => faults.map(({ kind }) => kind)));
    expect(kinds.size).toBe(20);
    const misdeeds = new Set<Misdeed>(plans.flatMap(({ settings }) => settings.misdeeds));
    expect(misdeeds.size).toBe(8);
    for (const app of ['queue', 'batch', 'emitter'])
      expect(plans.filter((plan) => JSON.stringify(plan).includes(`"app":"${app}"`)).length).toBeGreaterThan(
        10,
      );
    const listeners = plans.flatMap(({ processes }) => processes.flatMap(({ listeners = [] }) => listeners));
    expect(new Set(listeners.map((one) => one.do)).size).toBe(3);
  });

  it.each([
    ['locks', CALM_PLAN],
    ['permits', CALM_PERMIT_PLAN],
    ['read-write locks', CALM_READ_WRITE_PLAN],
    ['semaphores and latches', CALM_OBJECT_PLAN],
  ])(
    'breaks no promise of %s when a process stops or crashes, at any step of its own',
    { timeout: EACH_FAULT ? 1_200_000 : 300_000 },
    async (_kind, plan) => {
      const { steps } = await simulate(plan);
      expect(Math.min(...steps.values())).toBeGreaterThan(100);
      expect(await failures(plansForEachStep(plan, steps, EACH_FAULT))).toEqual([]);
    },
  );

  it.each(FOUND_PLANS)('breaks no promise when %s', async (_what, plan) => {
    expect(await failures([plan])).toEqual([]);
  });

  describe(`in ${SEEDS} seeds from ${FROM}`, () => {
    let harvest: Harvest;
    beforeAll(async () => {
      const startedAt = performance.now();
      harvest = await farmSeeds({ from: FROM, seeds: SEEDS, processes: availableParallelism() });
      const perMinute = Math.round((harvest.run / (performance.now() - startedAt)) * 60_000);
      console.log(`${harvest.run} seeds, ${perMinute} in a minute`);
    }, TIMEOUT_MS);

    it('breaks no promise', { timeout: 120_000 }, async () => {
      const { run, failed } = harvest;
      expect(run).toBe(SEEDS);
      const reports = failed.slice(0, 1).map(({ seed }) => reportOn(makePlan(seed)));
      expect(await Promise.all(reports), `failed: ${failed.map(({ seed }) => seed).join(' ')}`).toEqual([]);
    });

    it('brings the library into every state that a caller can see', () => {
      const { seen } = harvest;
      expect([...seen].sort()).toEqual([
        'aborted wait',
        'announced loss',
        'code LOCK_ABORTED',
        'code LOCK_CONFIGURATION',
        'code LOCK_LOST',
        'code LOCK_NOT_REENTRANT',
        'code LOCK_QUEUE_FULL',
        'code LOCK_SHUTDOWN',
        'code LOCK_STORE_FAILED',
        'code LOCK_TAKEN',
        'crash',
        'expired hold',
        'extension of hours',
        'forced hold',
        'lost hold',
        'nested lease',
        'not-executed request',
        'nothing',
        'null of tryAcquire',
        'pause',
        'permit',
        'place in line',
        'place that is gone',
        'read lock',
        'refused stale read',
        'refused stale write',
        'released by hand',
        'released hold',
        'taken afterwards',
        'undo',
        'unknown request',
        'use: LOCK_ABORTED',
        'use: LOCK_QUEUE_FULL',
        'use: LOCK_SHUTDOWN',
        'use: LOCK_STORE_FAILED',
        'use: LOCK_STORE_FAILED, unknown',
        'use: LOCK_TAKEN',
        'use: add',
        'use: countDown',
        'use: false',
        'use: look',
        'use: set',
        'use: take',
        'use: wait',
      ]);
    });
  });
});
