import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../stage.js';
import type { Board } from './board.js';
import { clock } from './ids.js';

const COUNT_EVERY_MS = 200;
const LOOK_EVERY_MS = 75;
/** A watch keeps the servers busy for at most a quarter of the time. */
const PARTS = 4;

export interface WatchOptions {
  readonly sku: string;
  readonly items: number;
  /** Returns the number of clicks with a reply. */
  readonly answered: () => number;
  readonly onSold?: (sold: number) => void;
  /** Signal that ends the watch. */
  readonly signal: AbortSignal;
}

/** Shows on the board what database and store say about a sale. While no page shows the board, it only counts. */
export const watchSale = async (
  stage: Stage,
  board: Board,
  { sku, items, answered, onSold, signal }: WatchOptions,
): Promise<void> => {
  const count = async () => {
    if (!board.isWatched) return onSold?.(await stage.sales.sold(sku));
    const facts = await stage.sales.facts(sku, items);
    board.counted(facts, answered());
    onSold?.(facts.sold);
  };
  const look = async () => {
    const key = board.isWatched ? board.key : undefined;
    if (key === undefined) return;
    const askedAt = clock();
    const hold = await stage.locks.hold(key);
    board.inspected(hold?.owner, clock() + (hold?.remainingMs ?? 0), askedAt);
  };
  await Promise.all([repeat(count, COUNT_EVERY_MS, signal), repeat(look, LOOK_EVERY_MS, signal)]);
};

/** Repeats `work` until the signal aborts, with a pause that is longer when the work takes long. */
const repeat = async (work: () => Promise<void>, everyMs: number, over: AbortSignal): Promise<void> => {
  while (!over.aborted) {
    const startedAt = performance.now();
    await work();
    const pause = Math.max(everyMs, (PARTS - 1) * (performance.now() - startedAt));
    await sleep(pause, undefined, { signal: over }).catch(() => undefined);
  }
};
