import { TestWorker } from '../../support/worker.js';
import type { FailedSeed } from './run-seeds.js';
import type { RunSeeds, SeedsRun } from './seeds.process.js';

/** How many seeds a process runs before it says how that went. */
const BATCH = 50;
/** A batch takes a few seconds. */
const BATCH_TIMEOUT_MS = 120_000;

export interface FarmOptions {
  readonly from: number;
  /** How many seeds; no batch is begun when they are over. */
  readonly seeds: number;
  readonly processes: number;
  /** No batch is begun when this has been aborted. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (run: number, failed: readonly FailedSeed[]) => void;
}

export interface Harvest {
  readonly run: number;
  readonly failed: readonly FailedSeed[];
  /** What the histories have shown, see `noteworthy`. */
  readonly seen: ReadonlySet<string>;
}

/** Runs many seeds in several processes. */
export const farmSeeds = async (options: FarmOptions): Promise<Harvest> => {
  const { from, seeds, processes, signal, onProgress } = options;
  const end = from + seeds;
  const failed: FailedSeed[] = [];
  const seen = new Set<string>();
  let next = from;
  let run = 0;
  const work = async (): Promise<void> => {
    await using worker = TestWorker.start<RunSeeds, SeedsRun>(new URL('./seeds.process.ts', import.meta.url));
    while (next < end && !signal?.aborted) {
      const batch = { from: next, to: Math.min(next + BATCH, end) };
      next = batch.to;
      worker.send({ type: 'run', ...batch });
      const done = await worker.next('run', { timeoutMs: BATCH_TIMEOUT_MS });
      failed.push(...done.failed);
      for (const one of done.seen) seen.add(one);
      run += batch.to - batch.from;
      onProgress?.(run, failed);
    }
    await worker.finish();
  };
  await Promise.all(Array.from({ length: processes }, work));
  return { run, failed: failed.sort((a, b) => a.seed - b.seed), seen };
};
