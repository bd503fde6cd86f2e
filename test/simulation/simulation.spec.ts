import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { historyText, type EventType, type HistoryEvent } from '../checker/history.js';
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
import { farmSeeds } from './seeds/seed-farm.js';
import { reportOn } from './shrink/report.js';

/** `SIMULATION_SEEDS=1000000 npx vitest run test/simulation` runs more of them, from `SIMULATION_FROM` on. */
const SEEDS = Number(process.env['SIMULATION_SEEDS'] ?? 6_000);
const FROM = Number(process.env['SIMULATION_FROM'] ?? 1);
/** A seed takes one or two ms. */
const TIMEOUT_MS = 120_000 + SEEDS * 20;

const failures = async (plans: Iterable<Plan>): Promise<string[]> => {
  for (const plan of plans) {
    if ((await judge(plan)).violations.length > 0) return [await reportOn(plan)];
  }
  return [];
};

const seedsUpTo = (count: number): Plan[] => Array.from({ length: count }, (_, i) => makePlan(i + 1));

describe('the simulation', () => {
  it('is the same run for the same seed, byte for byte', async () => {
    for (const plan of seedsUpTo(150)) {
      const [once, again] = [await simulate(plan), await simulate(plan)];
      expect(historyText(again.events), `seed ${plan.seed}`).toBe(historyText(once.events));
    }
  });

  it('makes all go wrong that can, and brings the core into every state that a caller can see', async () => {
    const plans = seedsUpTo(1_000);
    const kinds = new Set<FaultKind>(plans.flatMap(({ faults }) => faults.map(({ kind }) => kind)));
    expect(kinds.size).toBe(19);
    const misdeeds = new Set<Misdeed>(plans.flatMap(({ settings }) => settings.misdeeds));
    expect(misdeeds.size).toBe(8);
    const listeners = plans.flatMap(({ processes }) => processes.flatMap(({ listeners = [] }) => listeners));
    expect(new Set(listeners.map((one) => one.do)).size).toBe(3);
    const seen = new Set<string>();
    for (const plan of plans) for (const event of (await simulate(plan)).events) seen.add(noteworthy(event));
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

  it.each([
    ['locks', CALM_PLAN],
    ['permits', CALM_PERMIT_PLAN],
    ['read-write locks', CALM_READ_WRITE_PLAN],
    ['semaphores and latches', CALM_OBJECT_PLAN],
  ])(
    'breaks no promise of %s when a process stops or crashes, at each step of its own',
    { timeout: 120_000 },
    async (_kind, plan) => {
      const { steps } = await simulate(plan);
      expect(Math.min(...steps.values())).toBeGreaterThan(100);
      expect(await failures(plansForEachStep(plan, steps))).toEqual([]);
    },
  );

  it(`breaks no promise in ${SEEDS} seeds from ${FROM}`, { timeout: TIMEOUT_MS }, async () => {
    const startedAt = performance.now();
    const { run, failed } = await farmSeeds({ from: FROM, seeds: SEEDS, processes: availableParallelism() });
    const perMinute = Math.round((run / (performance.now() - startedAt)) * 60_000);
    console.log(`${run} seeds, ${perMinute} in a minute`);
    expect(run).toBe(SEEDS);
    const reports = failed.slice(0, 1).map(({ seed }) => reportOn(makePlan(seed)));
    expect(await Promise.all(reports), `failed: ${failed.map(({ seed }) => seed).join(' ')}`).toEqual([]);
  });
});

const PLAIN: Partial<Record<EventType, string>> = {
  abort: 'aborted wait',
  announced: 'announced loss',
  frozen: 'pause',
};

/** What of an event shows that the simulation gets around. */
const noteworthy = (event: HistoryEvent): string => {
  switch (event.type) {
    case 'refused':
    case 'result':
      if (event.type === 'refused' && !event.error) return 'null of tryAcquire';
      if (event.type === 'result' && event.doing === 'release' && event.lease && !event.error)
        return 'released by hand';
      return event.error ? `code ${event.error.code}` : 'nothing';
    case 'used':
      if (event.error) return `use: ${event.error.code}${event.unknown ? ', unknown' : ''}`;
      return event.result === false ? 'use: false' : 'nothing';
    case 'uses':
      return `use: ${event.what}`;
    case 'extends':
      return event.ms >= 3_600_000 ? 'extension of hours' : 'nothing';
    case 'granted':
      if (event.call.includes('after')) return 'taken afterwards';
      // Permits have names of 32 digits.
      for (const { owner } of event.parts) if (owner) return owner.includes(':') ? 'read lock' : 'permit';
      return event.parts.some(({ sharedWith }) => sharedWith) ? 'nested lease' : 'nothing';
    case 'gone':
      return event.how === 'crashed' ? 'crash' : 'nothing';
    case 'register':
      return event.accepted ? 'nothing' : `refused stale ${event.what}`;
    case 'free':
      return `${event.how} hold`;
    case 'request':
      return event.what === 'undo' ? 'undo' : 'nothing';
    case 'reply':
      // Of several places that were kept at once.
      if (event.outcome.split(' ').includes('gone')) return 'place that is gone';
      if (event.outcome === 'queued') return 'place in line';
      return ['unknown', 'not-executed'].includes(event.outcome) ? `${event.outcome} request` : 'nothing';
    default:
      return PLAIN[event.type] ?? 'nothing';
  }
};
