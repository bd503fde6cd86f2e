import fc from 'fast-check';
import { expect } from 'vitest';
import { until } from '../../support/async.js';
import { endAll, settle } from './agreement.js';
import { Model } from './model.js';
import { UNUSED, type World } from './world.js';

/** Runs one sequence, and sees to it that nothing is left of it. */
export const runOne = async (
  world: World,
  commands: Iterable<fc.AsyncCommand<Model, World>>,
): Promise<void> => {
  const model = new Model(world);
  try {
    await fc.asyncModelRun(() => ({ model, real: world }), commands);
  } catch (error) {
    // The report is about this failure, and not about one of the clean-up.
    await endAll(model).catch(() => undefined);
    throw error;
  }
  await endAll(model);
  await settle(model);
  for (const { usage } of world.services) expect(usage).toEqual(UNUSED);
  await until(async () => {
    const { holds, watches } = await world.leftovers();
    return holds === 0 && watches === 0;
  });
};
