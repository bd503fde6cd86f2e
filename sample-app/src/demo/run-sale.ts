import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import { clicksOf, sendCrowd, type Answer } from './crowd.js';
import { NO_FAULTS, rehearseFaults, type FaultReport } from './fault-drill.js';
import type { Board } from './live/board.js';
import { watchSale } from './live/watch-sale.js';
import { startProgress, type ProgressStream } from './progress.js';
import type { Narrator } from './narrator.js';
import { complaints } from './promises.js';
import type { Facts } from './sales.js';
import type { Paint } from './paint.js';
import type { Stage } from './stage.js';

export interface SaleOptions {
  readonly board: Board;
  readonly buyers: number;
  readonly items: number;
  readonly signal: AbortSignal;
  /** Stream for the progress. */
  readonly output: ProgressStream;
  readonly narrator: Narrator;
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
  const { board, buyers, items, signal, narrator } = options;
  const sku = `sneaker-${strategy}`;
  await stage.sales.putOnSale(sku, items);
  const underFaults = strategy === UNDER_FAULTS && stage.locks.maxInstances >= INSTANCES;
  const names = stage.instanceNames(INSTANCES);
  board.starting(strategy, names);
  const starting = Promise.all(names.map((name) => stage.startInstance(name, strategy, underFaults)));
  const instances = await narrator.during(`starting the instances for ${strategy}`, starting);
  instances.forEach((instance, index) => board.up(index, instance));
  const clicks = clicksOf(buyers).length;
  board.open({ strategy, items, clicks });

  const answers: Answer[] = [];
  let bought = 0;
  const progress = startProgress(options.output, strategy, clicks, options.paint);
  const onAnswer = (answer: Answer) => {
    answers.push(answer);
    if (answer.outcome === 'bought') bought++;
  };

  const over = new AbortController();
  const faults = underFaults
    ? rehearseFaults({
        instances,
        items,
        owner: async (key) => (await stage.locks.hold(key))?.owner,
        fence: () => stage.sales.fence(sku),
        soldShare: () => bought / items,
        onEvent: (text) => progress.event(text),
        board,
        signal: AbortSignal.any([signal, over.signal]),
      })
    : Promise.resolve(NO_FAULTS);
  const urls = instances.map(({ url }) => url);
  const crowd = sendCrowd({ sku, buyers, urls, signal, onAnswer }).finally(() => over.abort());
  // Show what the table counts: orders in the database. A buyer whose instance was killed has an order, but got no
  // reply.
  const answered = () => answers.length;
  const onSold = (sold: number) => progress.update(answered(), sold);
  const shown = watchSale(stage, board, { sku, items, answered, onSold, signal: over.signal });

  let report: FaultReport;
  let facts: Facts;
  try {
    await Promise.all([crowd, shown]);
    report = await faults;
    // The facts are final only when no instance can write any more.
    const stopping = Promise.all(instances.map((instance) => instance.stop()));
    await narrator.during(`stopping the instances of ${strategy}`, stopping);
    facts = await stage.sales.facts(sku, items);
    progress.finish(answers.length, facts.sold);
    board.over(facts);
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

/** Returns the faults that did not happen: such a run shows nothing. */
const missingFaults = ({ killed, stopped }: FaultReport, { staleWritesRefused }: Facts): string[] => [
  ...(killed === 0 ? ['no instance could be killed while it held the lock; try more buyers'] : []),
  ...(stopped === 0 ? ['no instance could be stopped while it held the lock; try more buyers'] : []),
  ...(stopped > 0 && staleWritesRefused === 0 ? ['no stopped instance came to make a stale write'] : []),
];
