import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { clicksOf, sendCrowd, type Answer } from './crowd.js';
import { NO_FAULTS, rehearseFaults, type FaultReport } from './fault-drill.js';
import { startProgress, type ProgressStream } from './progress.js';
import { complaints } from './promises.js';
import type { Facts } from './sales.js';
import type { Paint } from './paint.js';
import type { Stage } from './stage.js';

export interface SaleOptions {
  readonly buyers: number;
  readonly items: number;
  readonly signal: AbortSignal;
  /** Stream for the progress. */
  readonly output: ProgressStream;
  readonly paint: Paint;
}

export interface SaleReport {
  readonly strategy: StrategyName;
  readonly facts: Facts;
  readonly faults: FaultReport;
  /** Number of clicks without an order. */
  readonly refused: number;
  /** Number of those clicks without a reply. */
  readonly gaveUp: number;
  /** Failure of one of the latter. */
  readonly failure?: string;
  /** Duration of a click, in ms. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** What went wrong, as sentences. */
  readonly complaints: readonly string[];
}

export const INSTANCES = 3;
const COUNT_EVERY_MS = 200;

/** Strategy whose instances are killed and stopped. */
export const UNDER_FAULTS: StrategyName = 'locked';

const percentile = (sorted: readonly number[], share: number): number =>
  Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);

/** Runs one strategy's sale, from the opening to the facts. */
export const runSale = async (
  stage: Stage,
  strategy: StrategyName,
  options: SaleOptions,
): Promise<SaleReport> => {
  const { buyers, items, signal } = options;
  const sku = `sneaker-${strategy}`;
  await stage.sales.putOnSale(sku, items);
  const underFaults = strategy === UNDER_FAULTS && stage.locks.maxInstances >= INSTANCES;
  const instances = await stage.startInstances(INSTANCES, strategy, underFaults);

  const answers: Answer[] = [];
  let bought = 0;
  const progress = startProgress(options.output, strategy, clicksOf(buyers).length, options.paint);
  const onAnswer = (answer: Answer) => {
    answers.push(answer);
    if (answer.outcome === 'bought') bought++;
  };

  const over = new AbortController();
  const faults = underFaults
    ? rehearseFaults({
        instances,
        items,
        owner: (key) => stage.locks.owner(key),
        fence: () => stage.sales.fence(sku),
        soldShare: () => bought / items,
        onEvent: (text) => progress.event(text),
        signal: AbortSignal.any([signal, over.signal]),
      })
    : Promise.resolve(NO_FAULTS);
  const urls = instances.map(({ url }) => url);
  const crowd = sendCrowd({ sku, buyers, urls, signal, onAnswer }).finally(() => over.abort());
  // Show what the table counts: orders in the database. A buyer whose instance was killed has an order, but got no
  // reply.
  const shown = untilOver(over.signal, async () =>
    progress.update(answers.length, await stage.sales.sold(sku)),
  );

  let report: FaultReport;
  let facts: Facts;
  try {
    await Promise.all([crowd, shown]);
    report = await faults;
    // The facts are final only when no instance can write any more.
    await Promise.all(instances.map((instance) => instance.stop()));
    facts = await stage.sales.facts(sku, items);
    progress.finish(answers.length, facts.sold);
  } finally {
    progress.stop();
  }

  const times = answers.map((answer) => answer.tookMs).sort((a, b) => a - b);
  const lost = answers.filter((answer) => answer.outcome === 'gave-up');
  const missing = underFaults ? missingFaults(report, facts) : [];
  return {
    strategy,
    facts,
    faults: report,
    refused: answers.length - facts.sold,
    gaveUp: lost.length,
    failure: lost[0]?.failure,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    complaints: [...complaints(strategy, { facts, items, buyers }), ...missing],
  };
};

const untilOver = async (over: AbortSignal, work: () => Promise<void>): Promise<void> => {
  while (!over.aborted) {
    await work();
    await sleep(COUNT_EVERY_MS, undefined, { signal: over }).catch(() => undefined);
  }
};

/** Returns the faults that did not happen: such a run shows nothing. */
const missingFaults = ({ killed, stopped }: FaultReport, { staleWritesRefused }: Facts): string[] => [
  ...(killed === 0 ? ['no instance could be killed while it held the lock; try more buyers'] : []),
  ...(stopped === 0 ? ['no instance could be stopped while it held the lock; try more buyers'] : []),
  ...(stopped > 0 && staleWritesRefused === 0 ? ['no stopped instance came to make a stale write'] : []),
];
