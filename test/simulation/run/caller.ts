import type { Lease } from '../../../lib/core/lease.js';
import type { LockCall } from '../../../lib/core/lock-settings.js';
import { errorSeen } from '../../checker/history.js';
import type { CallerPlan, LockStep, Step } from '../plan/plan.js';
import type { SimRegister } from '../server/sim-register.js';
import type { Host } from './host.js';
import { LeaseWatch } from './lease-watch.js';

/** Work that goes wrong inside the lock. The library has to give it back untouched. */
class WorkError extends Error {}

/** Runs one caller's plan in its process, and writes down what it sees. */
export class Caller {
  private calls = 0;
  private readonly forks: Promise<unknown>[] = [];

  constructor(
    private readonly host: Host,
    private readonly register: SimRegister,
    private readonly name: string,
  ) {}

  async run({ startAt, steps }: CallerPlan): Promise<void> {
    await this.host.process.sleep(startAt);
    for (const step of steps) await this.outermost(step);
    while (this.forks.length > 0) await Promise.all(this.forks.splice(0));
  }

  /** A caller whose work failed goes on with the next thing it has to do. */
  private async outermost(step: Step): Promise<void> {
    try {
      await this.do(step, undefined);
    } catch (error) {
      if (!(error instanceof WorkError)) throw error;
    }
  }

  private async do(step: Step, inside: LeaseWatch | undefined): Promise<void> {
    const { process, manager } = this.host;
    switch (step.do) {
      case 'lock':
        return this.lock(step, inside);
      case 'sleep':
        return process.sleep(step.ms);
      case 'update':
        return inside && this.update(step.key, step.thinkMs, step.slowMs, inside);
      case 'extend':
        return inside && this.asking('extend', inside, () => inside.lease.extend(step.ms));
      case 'siblings':
        await Promise.all(step.steps.map((one) => this.do(one, inside)));
        return;
      case 'fork': {
        const start = () => this.do(step.step, step.detached ? undefined : inside);
        const work = step.detached ? this.host.around.core.detached(start) : start();
        this.forks.push(work.catch((error: unknown) => this.unlessWork(error)));
        return;
      }
      case 'forceUnlock':
        return this.asking('forceUnlock', inside, () => manager.forceUnlock(step.key));
      case 'inspect':
        return this.asking('inspect', inside, () => manager.inspect(step.key));
      case 'block':
        return process.freeze(step.ms);
      case 'fail':
        throw new WorkError('the work went wrong');
    }
  }

  private unlessWork(error: unknown): void {
    if (!(error instanceof WorkError)) throw error;
  }

  private async lock(step: LockStep, inside: LeaseWatch | undefined): Promise<void> {
    const { process, manager } = this.host;
    const call = `${this.name}.${++this.calls}`;
    const { keys, waitMs, style, holdAtLeastMs } = step;
    process.record({ type: 'call', call, keys, waitMs, style, holdAtLeastMs });
    const options = this.optionsOf(step, call);
    let watch: LeaseWatch | undefined;
    const section = async (lease: Lease): Promise<void> => {
      watch = new LeaseWatch(`L${call}`, lease, process, inside, this.host.leases);
      watch.begin(call);
      try {
        await this.work(step, watch);
      } finally {
        watch.end();
      }
    };
    try {
      if (style === 'withLock') return await manager.withLock(keys, options, section);
      const lease =
        style === 'tryAcquire'
          ? await manager.tryAcquire(keys, options)
          : await manager.acquire(keys, options);
      if (!lease) return process.record({ type: 'refused', call });
      try {
        await (style === 'run' ? lease.run(section) : section(lease));
      } finally {
        await this.asking('release', watch, () => lease.release());
      }
    } catch (error) {
      if (error instanceof WorkError) throw error;
      if (watch) process.record({ type: 'answer', doing: style, lease: watch.id, error: errorSeen(error) });
      else process.record({ type: 'refused', call, error: errorSeen(error) });
    }
  }

  private optionsOf(step: LockStep, call: string): LockCall {
    const { process, manager, around } = this.host;
    const { waitMs, leaseMs, abortAfterMs, holdAtLeastMs, reentrant, onLost } = step;
    let signal: AbortSignal | undefined;
    if (abortAfterMs !== undefined) {
      const controller = new AbortController();
      ({ signal } = controller);
      process.setTimer(() => {
        process.record({ type: 'abort', call });
        controller.abort(new Error('called off'));
      }, abortAfterMs);
    }
    return {
      ...around.core.defaultCall(manager.settings),
      waitMs: waitMs ?? Infinity,
      leaseMs,
      signal,
      reentrant: reentrant ?? true,
      onLost: onLost ?? 'event',
      holdAtLeastMs: holdAtLeastMs ?? 0,
    };
  }

  private async work({ inside, heedsLoss }: LockStep, watch: LeaseWatch): Promise<void> {
    for (const step of inside) {
      if (heedsLoss && watch.lease.signal.aborted) return;
      await this.do(step, watch);
    }
  }

  /** Reads, thinks, writes: an update is lost if somebody else writes in between. */
  private async update(key: string, thinkMs: number, slowMs: number, watch: LeaseWatch): Promise<void> {
    const part = watch.lease.parts.find((one) => one.key === key);
    if (!part) return;
    const visitor = { process: this.host.process, lease: watch.id, token: part.hold.token! };
    const base = await this.register.read(key, visitor);
    if (base === undefined) return;
    if (thinkMs > 0) await this.host.process.sleep(thinkMs);
    await this.register.update(key, base, visitor, slowMs);
  }

  private async asking(
    doing: string,
    watch: LeaseWatch | undefined,
    request: () => Promise<object | string | boolean | null | void>,
  ): Promise<void> {
    const { process } = this.host;
    try {
      const answer = await request();
      const result = JSON.stringify(answer) ?? 'done';
      process.record({ type: 'answer', doing, lease: watch?.id, result });
    } catch (error) {
      process.record({ type: 'answer', doing, lease: watch?.id, error: errorSeen(error) });
    }
  }
}
