import { TestWorker } from '../../support/worker.js';
import type { Endings, FromCycles, Stock, ToCycles } from '../processes/cycles.process.js';
import type { Bench, Outcome, Workload } from '../workload.js';

/** Cycles between two measurements of the heap. There are at least two measurements. */
const STOCK_EVERY = 200_000;
/** Steps of the progress bar between two measurements. */
const CHUNKS = 10;
/** Compiled code and caches of a fixed size stay in the heap after the first cycles. */
const WARM_UP = 20_000;
const CHUNK_TIMEOUT_MS = 300_000;
const MB = 1_048_576;
/** Noise of the heap size. */
const HEAP_NOISE_MB = 1;

/** A long-lived process must not leak: over hot, cold and never repeated keys, aborts and time-outs. */
export const cycles: Workload = {
  name: 'cycles',
  title: 'Cycles over hot, cold and never repeated keys, with aborts and time-outs',
  async run({ server, progress, cycles: total }: Bench): Promise<Outcome> {
    await using worker = TestWorker.start<ToCycles, FromCycles>(
      new URL('../processes/cycles.process.ts', import.meta.url),
      { library: 'built' },
    );
    const all: Endings = { held: 0, refused: 0, timedOut: 0, aborted: 0 };
    let violations = 0;
    const run = async (count: number): Promise<void> => {
      worker.send({ type: 'cycle', cycles: count });
      const done = await worker.next('cycled', { timeoutMs: CHUNK_TIMEOUT_MS });
      for (const ending of Object.keys(all) as (keyof Endings)[]) all[ending] += done.endings[ending];
      violations = done.violations;
      progress.step();
    };
    const takeStock = async (): Promise<Stock & { channels: number }> => {
      worker.send({ type: 'measure' });
      const { stock } = await worker.next('measured', { timeoutMs: CHUNK_TIMEOUT_MS });
      const channels = (await server.cli('PUBSUB', 'CHANNELS')) as string[];
      return { ...stock, channels: channels.length };
    };

    const stocktakings = Math.max(2, Math.round(total / STOCK_EVERY));
    const chunk = Math.ceil(total / stocktakings / CHUNKS);
    progress.begin(`${total.toLocaleString('en')} cycles`, stocktakings * CHUNKS + 1);
    worker.send({ type: 'open', url: server.url });
    await worker.next('opened');
    await run(WARM_UP);
    const first = await takeStock();
    const later: (typeof first)[] = [];
    for (let stocktaking = 0; stocktaking < stocktakings; stocktaking++) {
      for (let i = 0; i < CHUNKS; i++) await run(chunk);
      later.push(await takeStock());
    }
    await worker.finish();

    const last = later.at(-1)!;
    const heapMb = [first, ...later].map(({ heapBytes }) => heapBytes / MB);
    const grown = (what: 'usage' | 'listeners' | 'handles' | 'channels') => ({
      what: `${what}: ${first[what]} at the start, ${last[what]} at the end, growth`,
      values: [last[what] - first[what]],
      unit: '' as const,
      target: { atMost: 0 },
    });
    return {
      findings: [
        {
          what: `heap: ${heapMb[0]!.toFixed(1)} MB at the start, ${heapMb.at(-1)!.toFixed(1)} MB at the end, growth`,
          values: [heapMb.at(-1)! - heapMb[0]!],
          unit: 'MB',
          target: { atMost: HEAP_NOISE_MB },
        },
        ...(['usage', 'listeners', 'handles', 'channels'] as const).map(grown),
        ...Object.entries(all).map(([ending, times]) => ({
          what: `cycles that ended ${ENDING[ending as keyof Endings]}`,
          values: [times],
          unit: '' as const,
        })),
      ],
      violations,
    };
  },
};

const ENDING: Record<keyof Endings, string> = {
  held: 'with the lock held and released',
  refused: 'with null from tryAcquire',
  timedOut: 'with the end of the wait',
  aborted: 'with an abort',
};
