import { hasGo } from '../../../support/go-redsync.js';
import type { Comparison, Metric, Row } from '../../comparison.js';
import { FENCED, UNFENCED, type Contender } from '../../contenders.js';
import { emptyRow } from '../../measure/compare.js';
import { WAIT_MS } from '../../measure/contended.js';
import type { Runner } from '../../measure/together.js';
import { RedsyncWorker } from '../../processes/redsync-worker.js';
import type { LoadResult } from '../../processes/load.js';
import type { Bench } from '../../workload.js';

/** Numbers of servers. A majority of them has to agree. */
export const SIZES = [3, 5] as const;
export const QUICK_SIZES = [3] as const;

const REDSYNC: Contender = { name: 'redsync', subject: 'redsync', style: 'Lock', renews: false };

export const CONTENDERS: readonly Contender[] = [
  UNFENCED,
  FENCED,
  { name: 'redlock', subject: 'redlock', style: 'using', renews: true },
  { name: 'redlock, acquire', subject: 'redlock', style: 'acquire', renews: false },
  { name: 'redlock-universal', subject: 'redlock-universal', style: 'createRedlock', renews: true },
  { name: 'redis-semaphore', subject: 'redis-semaphore', style: 'RedlockMutex', renews: true },
  REDSYNC,
];

const NO_GO = 'it did not run: there is no Go on this machine';

/** The contenders' processes on the same servers. Disposing ends them. */
export class Entrants implements AsyncDisposable {
  private readonly go: RedsyncWorker[] = [];
  private readonly workers = new Map<Contender, readonly Runner[]>();

  private constructor(
    private readonly bench: Bench,
    private readonly urls: readonly string[],
  ) {}

  static async on(bench: Bench, urls: readonly string[], processes = 1): Promise<Entrants> {
    const entrants = new Entrants(bench, urls);
    try {
      for (const contender of CONTENDERS) await entrants.add(contender, processes);
      return entrants;
    } catch (error) {
      await entrants[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The contenders that run on this machine. */
  get contenders(): readonly Contender[] {
    return [...this.workers.keys()];
  }

  /** Returns the processes of a contender. Throws if the contender cannot run, as if it did not finish. */
  of(contender: Contender): readonly Runner[] {
    const workers = this.workers.get(contender);
    if (!workers) throw new Error(NO_GO);
    return workers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bench.crew.dismissAllAt(this.urls[0]!);
    await Promise.all(this.go.splice(0).map((one) => one[Symbol.asyncDispose]()));
  }

  private async add(contender: Contender, processes: number): Promise<void> {
    const { bench, urls } = this;
    if (contender !== REDSYNC) {
      const options = {
        ...{ url: urls[0]!, quorum: urls, waitMs: WAIT_MS },
        ...(contender === UNFENCED && { fencing: false }),
      };
      this.workers.set(contender, await bench.crew.of(contender, processes, options));
    } else if (hasGo()) {
      // One after the other: the first one is built.
      for (let i = 0; i < processes; i++) this.go.push(await RedsyncWorker.start(urls));
      this.workers.set(contender, this.go);
    }
  }
}

/** Returns empty rows. A contender that cannot run on this machine is marked. */
export const rowsFor = (sizes: readonly number[], metrics: readonly Metric[]): readonly Row[] =>
  CONTENDERS.flatMap((contender) =>
    sizes.map((at) => {
      const row = emptyRow(contender, at, metrics);
      if (contender === REDSYNC && !hasGo()) {
        row.broke = true;
        row.trouble = NO_GO;
      }
      return row;
    }),
  );

export const rowFor = ({ rows }: Pick<Comparison, 'rows'>, { name }: Contender, at: number): Row =>
  rows.find((row) => row.contender.name === name && row.at === at)!;

/** Prefix for all keys of a contender: several libraries on one name would block each other. */
export const prefixOf = ({ name }: Contender): string => `${name.replaceAll(/\W+/g, '-')}-`;

/** Adds violations and failures of a load to its row. */
export const noteTroubles = (row: Row, { violations, failures, firstFailure }: LoadResult): void => {
  row.violations += violations;
  row.failures += failures;
  row.trouble ??= firstFailure;
};

/** Returns for each round our value relative to the best peer. More than 1 is better than all peers. */
export const aheadOfPeers = (
  { rows }: Comparison,
  { key, better }: Metric,
  at: number,
  ours = UNFENCED,
): readonly number[] => {
  const its = rowFor({ rows }, ours, at).values[key]!;
  const peers = rows.filter((row) => row.at === at && !row.contender.ours).map((row) => row.values[key]!);
  return its.map((value, round) => {
    const others = peers.flatMap((values) => (values[round] === undefined ? [] : [values[round]]));
    return better === 'more' ? value / Math.max(...others) : Math.min(...others) / value;
  });
};
