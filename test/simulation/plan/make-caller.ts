import type { Random } from '../engine/random.js';
import { makeAftermath, makeMisdeeds } from './misbehave.js';
import { orPermit } from './make-permits.js';
import type { CallerPlan, LockStep, PlanSettings, Step } from './plan.js';

const UPDATE: Step = { do: 'update', key: 'a', thinkMs: 0, slowMs: 0 };

/** Whoever waits without end is to be served within the time of a run, also after a crash. */
const LONGEST_WAITED_OUT_MS = 20_000;

const misbehaves = ({ misdeeds }: PlanSettings): boolean => misdeeds.length > 0;

/** How deep locks are nested. */
const DEEPEST = 2;

const makeWork = (random: Random, { watchdogMs }: PlanSettings, keys: readonly string[]): Step => {
  const key = random.pick(keys);
  switch (random.whole(0, 9)) {
    case 0:
      return { do: 'sleep', ms: random.whole(1, 2 * watchdogMs) };
    case 1:
    case 2:
      return { do: 'sleep', ms: random.whole(1, 60) };
    case 3:
      return { do: 'extend', ms: random.whole(100, 3 * watchdogMs) };
    case 4:
      return { do: 'block', ms: random.chance(0.3) ? random.whole(50, 2 * watchdogMs) : random.whole(1, 50) };
    default: {
      const slowMs = random.chance(0.15) ? random.whole(10, 2 * watchdogMs) : 0;
      return { do: 'update', key, thinkMs: random.pick([0, 0, 5, 50]), slowMs };
    }
  }
};

/** Something that runs beside its parent: it may not write, since parent and child do not exclude each other. */
const makeFork = (random: Random, settings: PlanSettings, keys: readonly string[], depth: number): Step => {
  const lock = makeLock(random, settings, keys, DEEPEST);
  const quiet = { ...lock, inside: [{ do: 'sleep' as const, ms: random.whole(1, 40) }] };
  return random.chance(0.5)
    ? { do: 'fork', detached: true, step: { ...lock, waitMs: lock.waitMs ?? 500 } }
    : { do: 'fork', detached: false, step: depth > 0 ? quiet : { do: 'sleep', ms: 5 } };
};

const makeInside = (
  random: Random,
  settings: PlanSettings,
  keys: readonly string[],
  all: readonly string[],
  depth: number,
): Step[] => {
  const steps: Step[] = [];
  for (let i = random.pick([1, 1, 2, 3]); i > 0; i--) {
    if (misbehaves(settings) && depth < DEEPEST && random.chance(0.35)) {
      const nested = () => makeLock(random, settings, random.chance(0.8) ? keys : all, depth + 1);
      steps.push(...makeMisdeeds(random, settings, keys, nested));
    } else if (depth < DEEPEST && random.chance(0.15)) {
      const nested = () => makeLock(random, settings, random.chance(0.7) ? keys : all, depth + 1);
      steps.push(random.chance(0.5) ? nested() : { do: 'siblings', steps: [nested(), nested()] });
    } else if (random.chance(0.05)) steps.push(makeFork(random, settings, keys, depth));
    else if (random.chance(0.02)) steps.push({ do: 'fail' });
    else steps.push(makeWork(random, settings, keys));
  }
  return steps;
};

const chooseKeys = (random: Random, all: readonly string[]): readonly string[] => {
  if (all.length > 1 && random.chance(0.2)) return [all[1]!, all[0]!, all[0]!];
  return random.chance(0.05) ? [`cold${random.whole(1, 99)}`] : [random.pick(all)];
};

function makeLock(random: Random, settings: PlanSettings, all: readonly string[], depth: number): LockStep {
  const keys = chooseKeys(random, all);
  const style = random.pick(['withLock', 'withLock', 'tryWithLock', 'acquire', 'tryAcquire', 'run'] as const);
  const { watchdogMs } = settings;
  const waits = [0, random.whole(1, 40), random.whole(40, 400), random.whole(400, 3 * watchdogMs)];
  // Nobody waits for ever where a crash can leave the key taken for hours.
  const endless = depth === 0 && settings.longestMs <= LONGEST_WAITED_OUT_MS && random.chance(0.15);
  const leaseMs = random.chance(keys.length > 1 ? 0.4 : 0.2)
    ? random.pick([random.whole(20, 100), random.whole(100, 2_000)])
    : undefined;
  const step: LockStep = {
    do: 'lock',
    style,
    keys,
    waitMs: endless ? null : style.startsWith('try') && random.chance(0.7) ? 0 : random.pick(waits),
    leaseMs,
    watchdogMs: random.chance(0.1) ? random.pick([1_000, 3_000]) : undefined,
    abortAfterMs: random.chance(0.12) ? random.whole(0, 300) : undefined,
    holdAtLeastMs:
      style === 'withLock' && random.chance(misbehaves(settings) ? 0.2 : 0.1)
        ? random.whole(1, watchdogMs)
        : undefined,
    ordinary: random.chance(0.2) && depth > 0 ? true : undefined,
    onLost: random.chance(0.2) ? 'throw' : undefined,
    heedsLoss: random.chance(0.6),
    inside: makeInside(random, settings, keys, all, depth),
    after: misbehaves(settings) ? makeAftermath(random, settings) : undefined,
  };
  return orPermit(random, settings, depth === 0 ? 0.5 : 0.25, step);
}

/** A caller that wants the same key as everybody else, again and again, and never for long. */
export const makeHastyCaller = (random: Random, settings: PlanSettings): CallerPlan => {
  const { watchdogMs, longestMs } = settings;
  const endlessMs = longestMs <= LONGEST_WAITED_OUT_MS ? null : 3 * watchdogMs;
  const steps: Step[] = [];
  const nested = (): LockStep => makeLock(random, settings, ['a'], DEEPEST);
  for (let i = random.whole(2, 6); i > 0; i--) {
    const step: LockStep = {
      do: 'lock',
      style: random.pick(['withLock', 'withLock', 'tryWithLock', 'acquire', 'tryAcquire']),
      keys: ['a'],
      watchdogMs: random.chance(0.1) ? 3_000 : undefined,
      waitMs: random.pick([random.whole(5, 60), random.whole(100, 500), 3 * watchdogMs, endlessMs]),
      abortAfterMs: random.chance(0.15) ? random.whole(0, 60) : undefined,
      heedsLoss: true,
      inside: [
        random.chance(0.5) ? { do: 'sleep', ms: random.whole(1, 20) } : UPDATE,
        ...(misbehaves(settings) && random.chance(0.4) ? makeMisdeeds(random, settings, ['a'], nested) : []),
      ],
      after: misbehaves(settings) ? makeAftermath(random, settings) : undefined,
    };
    steps.push(orPermit(random, settings, 0.6, step));
    if (random.chance(0.2)) steps.push({ do: 'sleep', ms: random.whole(1, 60) });
  }
  return { startAt: random.whole(0, 20), steps };
};

/** What one caller does. */
export const makeCaller = (random: Random, settings: PlanSettings, keys: readonly string[]): CallerPlan => {
  const steps: Step[] = [];
  for (let i = random.whole(1, 3); i > 0; i--) {
    if (random.chance(0.3)) steps.push({ do: 'sleep', ms: random.whole(1, 200) });
    const other = random.next();
    if (other < 0.03) steps.push({ do: 'forceUnlock', key: random.pick(keys) });
    else if (other < 0.06) steps.push({ do: 'inspect', key: random.pick(keys) });
    else steps.push(makeLock(random, settings, keys, 0));
  }
  return { startAt: random.whole(0, 100), steps };
};
