import { GoRedsync } from '../../support/go-redsync.js';
import { monotonicMs } from '../measure/clock.js';
import type { Runner } from '../measure/together.js';
import type { Load, LoadResult } from './load.js';

/** How long it may take to answer after its load and the grace of those who wait at its end. */
const PATIENCE_MS = 60_000;
const GRACE_MS = 60_000;

/** What redsync's scripts run inside Redis. */
const INSIDE_SCRIPTS = ['get', 'del'];

/** A process of Go whose callers use redsync. Its options are the defaults, but for tries without end. */
export class RedsyncWorker implements Runner, AsyncDisposable {
  readonly name = 'redsync';
  readonly insideScripts = INSIDE_SCRIPTS;

  private constructor(private readonly go: GoRedsync) {}

  /** @param urls all servers of the quorum. */
  static async start(urls: readonly string[]): Promise<RedsyncWorker> {
    return new RedsyncWorker(await GoRedsync.start(urls.map((url) => new URL(url).host)));
  }

  get pid(): number {
    return this.go.pid;
  }

  async run(_style: string, load: Load): Promise<LoadResult> {
    const { callers, forMs, workMs, prefix = '', graceMs = GRACE_MS, keys, startAt, register } = load;
    const { noteTimes = false } = load;
    if (typeof keys === 'object' && !('one' in keys)) throw new Error('redsync has no such keys here');
    const order = {
      ...{ callers, forMs, graceMs, prefix, workMs, noteTimes },
      key: keys === 'free' ? '' : keys.one,
      // The clock of the processes of Node is none that Go tells: times are counted from the beginning, and compare with none.
      startAt: startAt === undefined ? 0 : Date.now() + (startAt - monotonicMs()),
      ...(register?.path !== undefined && { register: register.path, id: register.id }),
    };
    return this.go.load<LoadResult>(order, forMs + graceMs + PATIENCE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.go[Symbol.asyncDispose]();
  }
}
