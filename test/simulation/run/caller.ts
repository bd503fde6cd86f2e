import type { Lease } from '../../../lib/core/lease/lease.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import type { KeyOfCall } from '../../../lib/core/settings/acquire-options.js';
import { errorSeen, type Mode } from '../../checker/history.js';
import { ObjectUser } from '../../checker/object-user.js';
import type { CallerPlan, LockStep, Step } from '../plan/plan.js';
import type { SimRegister } from '../server/sim-register.js';
import type { Host } from './host.js';
import { LeaseWatch } from './lease-watch.js';

/** Work that goes wrong inside the lock. The library has to give it back untouched. */
class WorkError extends Error {}

/** The lease so many sections further out, or the outermost. */
const outward = (watch: LeaseWatch | undefined, up: number): LeaseWatch | undefined =>
  watch?.around && up > 0 ? outward(watch.around, up - 1) : watch;

/** The lease of the nearest lock around a call, which proves that it is nested: the lease of a permit proves nothing. */
const proofOf = (watch: LeaseWatch | undefined): readonly Lease[] => {
  for (let around = watch; around; around = around.around)
    if (around.lease.parts.every(({ hold }) => hold.claim.kind !== 'permit')) return [around.lease];
  return [];
};

/** The keys as the library is given them. */
const wantedBy = ({ keys, modes }: LockStep): readonly KeyOfCall[] =>
  modes ? keys.map((key, i) => ({ key, mode: modes[i]! })) : keys;

/** Each key that has a mode of its own: who writes one and reads it as well writes it. */
const modesOf = ({ keys, modes }: LockStep): Readonly<Record<string, Mode>> | undefined =>
  modes &&
  Object.fromEntries(
    keys.map((key) => [key, keys.some((one, i) => one === key && modes[i] === 'write') ? 'write' : 'read']),
  );

/** Runs one caller's plan in its process, and writes down what it sees. */
export class Caller {
  private calls = 0;
  private readonly forks: Promise<unknown>[] = [];
  private readonly objects: ObjectUser;

  constructor(
    private readonly host: Host,
    private readonly register: SimRegister,
    private readonly name: string,
  ) {
    this.objects = new ObjectUser(name, host.objects);
  }

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
        return inside && this.extend(step.ms, inside);
      case 'downgrade':
        return inside && this.downgrade(inside);
      case 'release':
        return this.release(outward(inside, step.up));
      case 'ask':
        return outward(inside, step.up)?.ask();
      case 'verify':
        return inside && this.verify(inside);
      case 'run':
        return inside && this.runIn(inside, step.inside);
      case 'through':
        return this.host.apps.run(step.app, () => this.do(step.step, inside));
      case 'later':
        await process.sleep(step.ms);
        return this.do(step.step, inside);
      case 'shutDown':
        return this.host.shutDown();
      case 'siblings':
        return this.siblings(step.steps, inside);
      case 'fork': {
        const start = () => this.do(step.step, step.detached ? undefined : inside);
        const work = step.detached ? this.host.around.core.detached(start) : start();
        this.forks.push(work.catch((error: unknown) => this.unlessWork(error)));
        return;
      }
      case 'forceUnlock':
        return this.requesting('forceUnlock', inside, () => manager.forceUnlock(step.key));
      case 'inspect':
        return this.requesting('inspect', inside, () => manager.inspect(step.key));
      case 'work':
        return this.objects.workWithPermits(step);
      case 'meet':
        return this.objects.meet(step);
      case 'block':
        return process.freeze(step.ms);
      case 'fail':
        throw new WorkError('the work went wrong');
    }
  }

  /** Waits for all of them, also when one fails. */
  private async siblings(steps: readonly Step[], inside: LeaseWatch | undefined): Promise<void> {
    const ends = await Promise.allSettled(steps.map((one) => this.do(one, inside)));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  private unlessWork(error: unknown): void {
    if (!(error instanceof WorkError)) throw error;
  }

  private async lock(step: LockStep, inside: LeaseWatch | undefined): Promise<void> {
    const { process, manager } = this.host;
    const call = `${this.name}.${++this.calls}`;
    const { keys, waitMs, style, holdAtLeastMs, permits, mode } = step;
    const wanted = wantedBy(step);
    const leaseMs = this.longestLeaseMs(step);
    const requested = { keys, waitMs, style, holdAtLeastMs, leaseMs, permits, mode, modes: modesOf(step) };
    process.record({ type: 'call', call, ...requested });
    const options = this.optionsOf(step, call, inside);
    let watch: LeaseWatch | undefined;
    const section = async (lease: Lease): Promise<void> => {
      watch = new LeaseWatch(`L${call}`, lease, process, inside, this.host.leases);
      watch.begin(call, style !== 'acquire' && style !== 'tryAcquire');
      try {
        await this.work(step, watch);
      } finally {
        watch.end();
      }
    };
    try {
      if (style === 'withLock') {
        await manager.withLock(wanted, options, section);
        return await this.misuse(step, watch);
      }
      if (style === 'tryWithLock') {
        const { ran } = await manager.tryWithLock(wanted, options, section);
        if (!ran) return process.record({ type: 'refused', call });
        return await this.misuse(step, watch);
      }
      const lease =
        style === 'tryAcquire'
          ? await manager.tryAcquire(wanted, options)
          : await manager.acquire(wanted, options);
      if (!lease) return process.record({ type: 'refused', call });
      try {
        await (style === 'run' ? lease.run(section) : section(lease));
      } finally {
        await this.requesting('release', watch, () => lease.release());
      }
      await this.misuse(step, watch);
    } catch (error) {
      if (error instanceof WorkError) throw error;
      if (watch) process.record({ type: 'result', doing: style, lease: watch.id, error: errorSeen(error) });
      else process.record({ type: 'refused', call, error: errorSeen(error) });
    }
  }

  /** While several keys are taken the watchdog keeps those that are there already. */
  private longestLeaseMs({
    keys,
    leaseMs,
    watchdogMs = this.host.manager.settings.watchdogMs,
  }: LockStep): number {
    return Math.max(leaseMs ?? watchdogMs, keys.length > 1 ? watchdogMs : 0);
  }

  /** The lease is over, but the caller still has it. */
  private async misuse({ after }: LockStep, watch: LeaseWatch | undefined): Promise<void> {
    if (!after || !watch) return;
    watch.release();
    for (const step of after) await this.do(step, watch);
  }

  private async release(watch: LeaseWatch | undefined): Promise<void> {
    if (!watch) return;
    watch.release();
    await this.requesting('release', watch, () => watch.lease.release());
  }

  private async extend(ms: number, watch: LeaseWatch): Promise<void> {
    const { isOver } = watch;
    if (!isOver) this.host.process.record({ type: 'extends', lease: watch.id, ms });
    await this.requesting('extend', watch, async () => {
      await watch.lease.extend(ms);
      if (isOver && !watch.isEnding) watch.claim('extend');
    });
  }

  private async downgrade(watch: LeaseWatch): Promise<void> {
    await this.requesting('downgrade', watch, () => {
      const done = watch.lease.downgrade();
      // It reads from here on, whatever becomes of the request; unless it was refused.
      if (watch.lease.parts.every(({ hold }) => hold.claim.kind === 'read'))
        this.host.process.record({ type: 'downgrades', lease: watch.id });
      return done;
    });
  }

  private async verify(watch: LeaseWatch): Promise<void> {
    const { isOver } = watch;
    await this.requesting('verify', watch, async () => {
      const valid = await watch.lease.verify();
      if (valid && isOver && !watch.isEnding) watch.claim('verify');
      return valid;
    });
  }

  private runIn(watch: LeaseWatch, inside: readonly Step[]): Promise<void> {
    return this.requesting('run', watch, () =>
      watch.lease.run(async () => {
        if (!watch.isEnding) watch.claim('section');
        for (const step of inside) await this.do(step, watch);
      }),
    );
  }

  private optionsOf(step: LockStep, call: string, inside: LeaseWatch | undefined): LockCall {
    const { process, manager, around } = this.host;
    const { waitMs, leaseMs, watchdogMs, abortAfterMs, holdAtLeastMs, onLost, awaitRelease } = step;
    let signal: AbortSignal | undefined;
    if (abortAfterMs !== undefined) {
      const controller = new AbortController();
      ({ signal } = controller);
      process.setTimer(() => {
        process.record({ type: 'abort', call });
        controller.abort(new Error('called off'));
      }, abortAfterMs);
    }
    const usual = around.core.defaultCall(manager.settings);
    return {
      ...usual,
      ...(this.host.isFair && { kind: 'fair' as const }),
      ...(step.mode && { kind: step.mode }),
      ...(step.permits !== undefined && { kind: 'permit', permits: step.permits ?? undefined }),
      watchdogMs: watchdogMs ?? usual.watchdogMs,
      waitMs: waitMs ?? Infinity,
      leaseMs,
      signal,
      inside: step.ordinary || step.permits !== undefined ? [] : proofOf(inside),
      onLost: onLost ?? 'event',
      awaitRelease: awaitRelease ?? true,
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
    const token = part?.hold.token;
    if (token === undefined || watch.isOver) return;
    const visitor = { process: this.host.process, lease: watch.id, token };
    const base = await this.register.read(key, visitor);
    if (base === undefined) return;
    if (thinkMs > 0) await this.host.process.sleep(thinkMs);
    await this.register.update(key, base, visitor, slowMs);
  }

  private async requesting(
    doing: string,
    watch: LeaseWatch | undefined,
    request: () => Promise<object | string | boolean | null | void>,
  ): Promise<void> {
    const { process } = this.host;
    try {
      const reply = await request();
      const result = JSON.stringify(reply) ?? 'done';
      process.record({ type: 'result', doing, lease: watch?.id, result });
    } catch (error) {
      if (error instanceof WorkError) throw error;
      process.record({ type: 'result', doing, lease: watch?.id, error: errorSeen(error) });
    }
  }
}
