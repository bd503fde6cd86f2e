import { Random } from '../engine/random.js';
import { withApps } from './make-apps.js';
import { makeFaults, withSlowServer } from './make-faults.js';
import { makeCaller, makeHastyCaller } from './make-caller.js';
import { chooseMisdeeds, makeListeners } from './misbehave.js';
import { chooseObjects, usingObjects } from './make-objects.js';
import { makePermitKeys } from './make-permits.js';
import { readingAndWriting } from './make-modes.js';
import { sometimesUnawaited } from './unawaited.js';
import type { Plan, PlanSettings, ProcessPlan } from './plan.js';

/** Clocks of machines differ by no more than this, in ms per ms. */
const DRIFT = 0.0001;

const makeSettings = (random: Random): PlanSettings => {
  const watchdogMs = random.pick([1_000, 1_000, 2_000, 6_000]);
  const misdeeds = chooseMisdeeds(random);
  return {
    watchdogMs,
    commandTimeoutMs: random.pick([100, 200, 400]),
    latencyMs: [0.2, random.pick([0.5, 1.5, 4, 20])],
    maxWaiters: random.chance(0.15) ? random.whole(0, 2) : null,
    shutdownGraceMs: random.pick([50, 500]),
    mayKill: random.chance(0.9),
    longestMs:
      misdeeds.length > 0 && random.chance(0.4) ? random.pick([3_600_000, 7_200_000]) : 3 * watchdogMs,
    misdeeds,
    permits: makePermitKeys(random),
  };
};

/** What a seed stands for. */
export const makePlan = (seed: number): Plan => {
  const random = new Random(`plan ${seed}`);
  const settings = makeSettings(random);
  const crowded = random.chance(0.3);
  const keys = crowded ? ['a'] : random.pick([['a'], ['a', 'b'], ['a', 'b', 'c']]);
  const all = [...keys, ...settings.permits.map(({ key }) => key)];
  const processes: ProcessPlan[] = [];
  const count = crowded ? random.pick([2, 2, 3]) : random.pick([1, 2, 2, 3]);
  const callers = random.pick([1, 2, 3]);
  for (let p = 1; p <= count; p++) {
    processes.push({
      name: `p${p}`,
      rate: 1 + random.between(-DRIFT, DRIFT) / 2,
      callers: Array.from({ length: callers }, () =>
        crowded ? makeHastyCaller(random, settings) : makeCaller(random, settings, keys),
      ),
      listeners: settings.misdeeds.length > 0 ? makeListeners(random, settings) : undefined,
    });
  }
  const faults = withSlowServer(
    new Random(`slow server of ${seed}`),
    settings,
    makeFaults(random, settings, processes, all),
  );
  const releases = new Random(`releases of ${seed}`);
  const unawaited = processes.map((one) => ({
    ...one,
    callers: one.callers.map((caller) => sometimesUnawaited(releases, caller)),
  }));
  // With dice of their own: all else stays as it was.
  const kinds = new Random(`kinds of ${seed}`);
  const fair = kinds.chance(0.2);
  const readWrite = !fair && kinds.chance(0.19);
  const modes = new Random(`modes of ${seed}`);
  const inKind = unawaited.map((one) => ({
    ...one,
    callers: readWrite ? one.callers.map((caller) => readingAndWriting(modes, caller)) : one.callers,
  }));
  const dice = new Random(`objects of ${seed}`);
  const objects = chooseObjects(dice, count * callers);
  const withObjects = inKind.map((one) => ({
    ...one,
    callers: objects ? one.callers.map((caller) => usingObjects(dice, objects, caller)) : one.callers,
  }));
  const ofKind = { ...settings, ...(fair && { fair }), ...(readWrite && { readWrite }) };
  return withApps(new Random(`apps of ${seed}`), {
    seed,
    settings: ofKind,
    processes: withObjects,
    faults,
  });
};
