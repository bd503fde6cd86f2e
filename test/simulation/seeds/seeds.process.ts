import { workerChannel } from '../../support/worker-channel.js';
import { runSeeds, type FailedSeed } from './run-seeds.js';

export interface RunSeeds {
  readonly type: 'run';
  readonly from: number;
  readonly to: number;
}

export interface SeedsRun {
  readonly type: 'run';
  readonly failed: readonly FailedSeed[];
  readonly seen: readonly string[];
}

// Thousands of errors are part of a run, and nobody reads where they come from.
Error.stackTraceLimit = 0;

const channel = workerChannel<RunSeeds, SeedsRun>();
channel.on('run', async ({ from, to }) => {
  const { failed, seen } = await runSeeds(from, to);
  channel.send({ type: 'run', failed, seen: [...seen] });
});
