import { NEWEST_CURATOR } from '../../../support/curator/curator-build.js';
import { rowOf, type Comparison } from '../../comparison.js';
import { BY_HAND, type Contender } from '../../contenders.js';
import { WAIT_MS } from '../../measure/contended.js';
import type { Runner } from '../../measure/together.js';
import { CuratorWorker } from '../../processes/curator-worker.js';
import { ZOOKEEPER } from '../../subjects/subject.js';
import type { Bench } from '../../workload.js';

export const OURS: Contender = { ...BY_HAND, name: 'ZooKeeperStore' };

/** The bare requests. It cannot wait. */
export const FLOOR: Contender = {
  name: 'floor',
  subject: 'zookeeper-floor',
  style: 'withLock',
  renews: false,
};

export const CURATOR: Contender = {
  name: `Curator ${NEWEST_CURATOR} (Java)`,
  subject: 'curator',
  style: 'InterProcessMutex',
  renews: true,
};

/** The contenders' processes on the same servers. Disposing ends them. */
export class Entrants implements AsyncDisposable {
  private readonly java: CuratorWorker[] = [];
  private readonly workers = new Map<Contender, readonly Runner[]>();

  private constructor(
    private readonly bench: Bench,
    private readonly urls: readonly string[],
  ) {}

  /** @param urls one for each process, of the server that it has its session on. */
  static async on(
    bench: Bench,
    urls: readonly string[],
    contenders: readonly Contender[],
  ): Promise<Entrants> {
    const entrants = new Entrants(bench, urls);
    try {
      for (const contender of contenders) entrants.workers.set(contender, await entrants.start(contender));
      return entrants;
    } catch (error) {
      await entrants[Symbol.asyncDispose]();
      throw error;
    }
  }

  of(contender: Contender): readonly Runner[] {
    return this.workers.get(contender)!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const url of new Set(this.urls)) await this.bench.crew.dismissAllAt(url);
    await Promise.all(this.java.splice(0).map((one) => one[Symbol.asyncDispose]()));
  }

  private async start(contender: Contender): Promise<readonly Runner[]> {
    const runners: Runner[] = [];
    // One after the other: the first process of Java is built.
    for (const [at, url] of this.urls.entries()) {
      if (contender === CURATOR) {
        this.java.push(await CuratorWorker.start(url.slice(ZOOKEEPER.length)));
        runners.push(this.java.at(-1)!);
      } else {
        const before = this.urls.slice(0, at).filter((one) => one === url).length;
        const its = await this.bench.crew.of(contender, before + 1, { url, waitMs: WAIT_MS });
        runners.push(its[before]!);
      }
    }
    return runners;
  }
}

/** Returns for each round a value of the store relative to another contender's. */
export const relativeTo = (
  comparison: Comparison,
  { name }: Contender,
  metric: string,
  at?: number,
): readonly number[] => {
  const others = rowOf(comparison, name, at)!.values[metric]!;
  return rowOf(comparison, OURS.name, at)!.values[metric]!.map((value, round) => value / others[round]!);
};
