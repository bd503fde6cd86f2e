import type { Random } from '../engine/random.js';
import type { App, CallerPlan, LockStep, Plan, Step } from './plan.js';

/** In how many plans callers have an app around their locks; how many of their calls, and of their work, go through it. */
const USED = 0.25;
const CALLS = 0.5;
const WORK = 0.5;

/** A call that is a task of a queue makes all tasks behind it wait. */
const MAX_WAIT_MS = 300;
const MAX_WATCHDOG_MS = 2_000;

const isWork = ({ do: what }: Step): boolean => what === 'sleep' || what === 'update';

/** A nested call is not a task: its section would wait for a task that waits for the section. */
const workThrough = (random: Random, app: App, step: LockStep): LockStep => ({
  ...step,
  inside: step.inside.map((one) =>
    isWork(one) && random.chance(WORK) ? { do: 'through', app, step: one } : one,
  ),
});

const inStep = (random: Random, app: App, step: Step): Step => {
  if (step.do !== 'lock') return step;
  if (!random.chance(CALLS)) return workThrough(random, app, step);
  const waitMs = Math.min(step.waitMs ?? Infinity, MAX_WAIT_MS);
  return { do: 'through', app, step: { ...step, waitMs } };
};

/** Returns the plan with an app around some of the locks. With dice of its own: all else stays as it was. */
export const withApps = (random: Random, plan: Plan): Plan => {
  if (plan.settings.watchdogMs > MAX_WATCHDOG_MS || !random.chance(USED)) return plan;
  const app = random.pick(['queue', 'queue', 'batch', 'emitter'] as const);
  const callers = ({ startAt, steps }: CallerPlan): CallerPlan => ({
    startAt,
    steps: steps.map((step) => inStep(random, app, step)),
  });
  return {
    ...plan,
    processes: plan.processes.map((one) => ({ ...one, callers: one.callers.map(callers) })),
  };
};
