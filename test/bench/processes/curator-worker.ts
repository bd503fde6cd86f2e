import { setTimeout as sleep } from 'node:timers/promises';
import { Curator } from '../../support/curator/curator.js';
import { monotonicMs } from '../measure/clock.js';
import { sum } from '../measure/statistics.js';
import type { Runner } from '../measure/together.js';
import { KEYS_PER_CALLER, type Load, type LoadResult } from './load.js';

const BASE = '/curator';
/** The default of the other contenders. */
const SESSION_MS = 30_000;

/** What Java has to tell of a load. */
type Ran = Pick<LoadResult, 'served' | 'sections' | 'elapsedMs' | 'longestWaitMs' | 'times'>;

/**
 * A process of Java whose threads use `InterProcessMutex` of Curator, with one session. Threads wait without a limit. Whether
 * sections of one key overlap is for the workload to look at: their times are noted.
 */
export class CuratorWorker implements Runner, AsyncDisposable {
  readonly name = 'curator';
  readonly insideScripts = [];

  private constructor(private readonly java: Curator) {}

  static async start(connect: string): Promise<CuratorWorker> {
    const java = await Curator.start(connect, { sessionTimeoutMs: SESSION_MS, compiles: 'well' });
    return new CuratorWorker(java);
  }

  get pid(): number {
    return this.java.pid;
  }

  async run(_style: string, load: Load): Promise<LoadResult> {
    const { keys, startAt } = load;
    if (typeof keys === 'object' && !('one' in keys)) throw new Error('Curator has no such keys here');
    const before = await this.java.send('cpuMs', {});
    if (startAt !== undefined) await sleep(Math.max(0, startAt - monotonicMs()));
    const ran = await (keys === 'free' ? this.free(load) : this.contend(keys.one, load));
    const cpuMs = (await this.java.send('cpuMs', {})) - before;
    return { ...ran, cpuMs, callsMs: [], busyMs: 0, violations: 0, failures: 0, unfinished: 0 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.java.kill();
  }

  private async free({ callers: threads, forMs, prefix = '' }: Load): Promise<Ran> {
    const below = `${BASE}/${prefix}`.replace(/\W$/, '');
    const { served, elapsedMs } = await this.java.send('free', {
      ...{ below, threads, each: KEYS_PER_CALLER, forMs: Math.round(forMs) },
    });
    return { served, sections: sum(served), elapsedMs, longestWaitMs: 0, times: [] };
  }

  private async contend(key: string, { callers: threads, forMs, workMs, prefix = '' }: Load): Promise<Ran> {
    const ran = await this.java.send('contend', {
      ...{ name: `${BASE}/${prefix}${key}`, threads, workMs, forMs: Math.round(forMs) },
    });
    const times = ran.flatMap((thread) => thread.times);
    return {
      served: ran.map((thread) => thread.served),
      sections: times.length,
      elapsedMs: forMs,
      longestWaitMs: Math.max(...ran.map(({ longestMs }) => longestMs)),
      times,
    };
  }
}
