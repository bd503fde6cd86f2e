import fc from 'fast-check';
import { describe, it } from 'vitest';
import { runs } from '../../support/property/runs.js';
import { sequences } from './commands.js';
import { runOne } from './run-one.js';
import { memoryWorld } from './world.js';

describe('any sequence of calls of several services does what a simple model says, and leaves nothing', () => {
  it('on the memory store, while time passes', async () => {
    await fc.assert(
      fc.asyncProperty(sequences(true, 60), async (commands) => runOne(await memoryWorld(), commands)),
      runs(300),
    );
  });
});
