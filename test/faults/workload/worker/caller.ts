import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease } from '../../../../lib/core/lease/lease.js';
import type { RegisterClient } from '../../register/register-client.js';
import { FAIR_KEY, type Step, type Style, type Task } from '../task.js';
import { errorSeen } from '../../../checker/history.js';
import { AFTERWARDS } from '../../../checker/rules/afterwards.rule.js';
import { ObjectUser } from '../../../checker/object-user.js';
import type { ObjectTask } from '../worker-messages.js';
import { CallerSignal } from './caller-signal.js';
import { DECORATED, type Library, type Orders, type Section } from './orders.service.js';
import type { OpenLease, Recorder } from './recorder.js';

/** What a caller needs of its worker. */
export interface Surroundings {
  readonly library: Library;
  readonly locks: InstanceType<Library['LockService']>;
  readonly orders: Orders;
  readonly keyPrefix: string;
  readonly watchdogMs: number;
  readonly recorder: Recorder;
  readonly register: RegisterClient;
  /** Says to the laboratory that a task has come so far. */
  notify(what: string): void;
  /** Resolves when the laboratory says that a task may go on. */
  notified(what: string): Promise<void>;
}

/** How the lease is taken without a section. */
type ByHand =
  'acquire' | 'tryAcquire' | 'acquire, fair' | 'tryAcquire, fair' | 'acquirePermit' | 'tryAcquirePermit';

const isByHand = (style: Style): style is ByHand => /^(tryA|a)cquire/.test(style);

/** The decorated methods that read and write. */
const OF_MODE = { read: 'reads', write: 'writes' } as const;

const waitMsOf = ({ style, waitMs }: Task): number | null => {
  if (style === 'locked, skip') return 0;
  return style.startsWith('locked') ? DECORATED.waitMs : waitMs;
};

/** The lease of the nearest lock around a task, which proves that it is nested: the lease of a permit proves nothing. */
const proofOf = ({ ordinary }: Task, enclosing: readonly OpenLease[]): Lease | undefined =>
  ordinary
    ? undefined
    : enclosing.find(({ lease }) => lease.parts.every(({ hold }) => hold.claim.kind !== 'permit'))?.lease;

/** Nothing else of the process runs for so long. */
const blockFor = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

/** Carries out the tasks of one round, and has written down what comes of them. */
export class Caller {
  /** Listeners that were still on callers' signals when their calls were over. */
  listenersLeft = 0;
  private readonly underWay = new Set<Promise<void>>();
  private readonly objects: ObjectUser;

  constructor(
    private readonly around: Surroundings,
    private readonly round: string,
  ) {
    const { locks, recorder, keyPrefix } = around;
    this.objects = new ObjectUser(`${recorder.process}.${round}`, {
      semaphore: (key) => locks.semaphore(this.nameOf(key)),
      countDownLatch: (key) => locks.countDownLatch(this.nameOf(key)),
      finalKey: (key) => keyPrefix + this.nameOf(key),
      record: (event) => recorder.write(event),
      sleep,
      leaveAfter: (ms, notify) => {
        const leaving = new CallerSignal(ms, notify);
        return { signal: leaving.signal, close: () => (this.listenersLeft += leaving.close()) };
      },
    });
  }

  /** Resolves when every task is over. */
  async idle(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
  }

  perform(task: Task): Promise<void> {
    return this.during(this.performIn(task, []));
  }

  /** The same with a semaphore or a latch. */
  use(task: ObjectTask): Promise<void> {
    return this.during(task.do === 'work' ? this.objects.workWithPermits(task) : this.objects.meet(task));
  }

  private during(task: Promise<void>): Promise<void> {
    const work = task.finally(() => this.underWay.delete(work));
    this.underWay.add(work);
    return work;
  }

  private async performIn(task: Task, enclosing: readonly OpenLease[]): Promise<void> {
    const { recorder } = this.around;
    const { style, holdAtLeastMs, mode } = task;
    const call = recorder.call({
      keys: task.keys.map((key) => this.around.keyPrefix + this.nameOf(key)),
      waitMs: waitMsOf(task),
      style,
      ...(mode && { mode }),
      ...(holdAtLeastMs !== undefined && { holdAtLeastMs }),
      leaseMs: this.longestLeaseMs(task),
      ...(task.permits !== undefined && { permits: task.permits }),
    });
    const signal = new CallerSignal(task.abortAfterMs, () => recorder.write({ type: 'abort', call }));
    let open: OpenLease | undefined;
    let over = false;
    const begin = (lease: Lease): OpenLease => {
      signal.granted();
      return (open = recorder.granted(call, lease, enclosing));
    };
    try {
      const served = isByHand(style)
        ? await this.byHand(style, task, signal, begin, enclosing)
        : await this.inSection(style, task, signal, proofOf(task, enclosing), async (lease) => {
            const own = begin(lease);
            await this.steps(task.steps, own, [own, ...enclosing]);
            recorder.ended(own);
          });
      if (!served) recorder.refused(call);
      over = true;
    } catch (error) {
      if (open) recorder.returned(open, style, { error });
      else recorder.refused(call, error);
    } finally {
      this.listenersLeft += signal.close();
    }
    if (over && open) await this.steps(task.after ?? [], open, enclosing);
  }

  /** False when the call was skipped because the lock is taken. */
  private async inSection(
    style: Exclude<Style, ByHand>,
    { keys, waitMs, leaseMs, holdAtLeastMs, permits, mode }: Task,
    { signal }: CallerSignal,
    inside: Lease | undefined,
    section: Section,
  ): Promise<boolean> {
    const { locks, orders } = this.around;
    const locked = <A extends unknown[], R>(method: (this: Orders, ...args: A) => R, ...args: A): R =>
      inside ? inside.call(orders, method, ...args) : method.call(orders, ...args);
    const [first, second] = keys;
    switch (style) {
      case 'withLock':
      case AFTERWARDS:
      case 'withLock, fair': {
        const fair = style === 'withLock, fair' || (style === AFTERWARDS && first === FAIR_KEY);
        const options = {
          waitMs: waitMs ?? Infinity,
          leaseMs,
          holdAtLeastMs,
          signal,
          inside,
          mode: fair ? 'fair' : mode,
        } as const;
        await locks.withLock(this.namesOf(keys), options, section);
        return true;
      }
      case 'withPermit': {
        const options = { waitMs: waitMs ?? Infinity, leaseMs, holdAtLeastMs, signal };
        await locks
          .permits(this.nameOf(first!), { permits: permits ?? undefined })
          .withPermit(options, section);
        return true;
      }
      case 'locked':
        await locked(orders[mode ? OF_MODE[mode] : 'watched'], this.round, first!, section);
        return true;
      case 'locked, fair':
        await locked(orders.fair, this.round, first!, section);
        return true;
      case 'locked, fixed':
        await locked(orders.fixed, this.round, first!, section);
        return true;
      case 'locked, skip':
        return locked(orders.skipped, this.round, first!, section);
      case 'locked, two keys':
        await locked(orders.two, this.round, first!, second!, section);
        return true;
    }
  }

  /** Nothing releases these leases but their caller. False when a `tryAcquire` resolved with null. */
  private async byHand(
    style: ByHand,
    task: Task,
    { signal }: CallerSignal,
    begin: (lease: Lease) => OpenLease,
    enclosing: readonly OpenLease[],
  ): Promise<boolean> {
    const { locks, recorder } = this.around;
    const { keys, waitMs, leaseMs, steps, permits, mode } = task;
    const options = { waitMs: waitMs ?? Infinity, leaseMs, signal };
    const method = style.startsWith('try') ? 'tryAcquire' : 'acquire';
    const lease =
      style === 'acquirePermit' || style === 'tryAcquirePermit'
        ? await locks.permits(this.nameOf(keys[0]!), { permits: permits ?? undefined })[method](options)
        : await locks[method](this.namesOf(keys), {
            ...options,
            inside: proofOf(task, enclosing),
            mode: style.endsWith('fair') ? 'fair' : mode,
          });
    if (!lease) return false;
    const open = begin(lease);
    try {
      await lease.run(() => this.steps(steps, open, [open, ...enclosing]));
    } catch (error) {
      recorder.returned(open, 'run', { error });
    }
    await this.release(open);
    return true;
  }

  private async release(open: OpenLease): Promise<void> {
    const { recorder } = this.around;
    recorder.ended(open);
    try {
      recorder.returned(open, 'release', { result: await open.lease.release() });
    } catch (error) {
      recorder.returned(open, 'release', { error });
    }
  }

  private async extend(open: OpenLease, ms: number): Promise<void> {
    const { recorder } = this.around;
    const isOpen = recorder.isOpen(open);
    if (isOpen) recorder.extends(open, ms);
    try {
      await open.lease.extend(ms);
      if (!isOpen) recorder.claims(open, 'extend');
    } catch (error) {
      recorder.returned(open, 'extend', { error });
    }
  }

  private async downgrade(open: OpenLease): Promise<void> {
    const { recorder } = this.around;
    try {
      const done = open.lease.downgrade();
      if (open.lease.parts.every(({ hold }) => hold.claim.kind === 'read')) recorder.downgrades(open);
      await done;
    } catch (error) {
      recorder.returned(open, 'downgrade', { error });
    }
  }

  private async forceUnlock(name: string): Promise<void> {
    const { locks, recorder } = this.around;
    try {
      await locks.forceUnlock(name);
    } catch (error) {
      recorder.write({ type: 'result', doing: 'forceUnlock', error: errorSeen(error) });
    }
  }

  private async steps(
    steps: readonly Step[],
    open: OpenLease,
    sections: readonly OpenLease[],
  ): Promise<void> {
    for (const step of steps) await this.step(step, open, sections);
  }

  private async step(step: Step, open: OpenLease, sections: readonly OpenLease[]): Promise<void> {
    switch (step.do) {
      case 'pause':
        await sleep(step.ms);
        return;
      case 'notify':
        this.around.notify(this.nameOf(step.what));
        return;
      case 'wait':
        await this.around.notified(this.nameOf(step.for));
        return;
      case 'write':
        await this.write(open, this.nameOf(step.key), step.pauseMs);
        return;
      case 'extend':
        await this.extend(open, step.ms);
        return;
      case 'release':
        await this.release(open);
        return;
      case 'downgrade':
        await this.downgrade(open);
        return;
      case 'ask':
        if (open.lease.remainingMs() > 0) this.around.recorder.claims(open, 'remainingMs');
        return;
      case 'run':
        try {
          await open.lease.run(() => this.around.recorder.claims(open, 'section'));
        } catch (error) {
          this.around.recorder.returned(open, 'run', { error });
        }
        return;
      case 'forceUnlock':
        await this.forceUnlock(this.nameOf(step.key));
        return;
      case 'block':
        blockFor(step.ms);
        this.around.recorder.mark();
        return;
      case 'in-turn':
        await this.steps(step.steps, open, sections);
        return;
      case 'beside':
        await Promise.all(step.steps.map((one) => this.step(one, open, sections)));
        return;
      case 'nest':
        await Promise.all(step.tasks.map((task) => this.performIn(task, sections)));
    }
  }

  /** Does not ask whether the lease is lost: the resource's fence has to stop whoever comes too late. */
  private async write(open: OpenLease, name: string, pauseMs: number): Promise<void> {
    const { id, lease } = open;
    if (!this.around.recorder.isOpen(open)) return;
    const { register, keyPrefix } = this.around;
    const about = { key: keyPrefix + name, lease: id, token: lease.tokenFor(name) };
    const { accepted, version } = await register.send({ what: 'read', ...about });
    if (!accepted) return;
    if (pauseMs > 0) await sleep(pauseMs);
    await register.send({ what: 'write', base: version, ...about });
  }

  private longestLeaseMs({ style, keys, leaseMs }: Task): number {
    const { watchdogMs } = this.around;
    if (style === 'locked, fixed') return DECORATED.leaseMs;
    return Math.max(leaseMs ?? watchdogMs, keys.length > 1 ? watchdogMs : 0);
  }

  private nameOf(key: string): string {
    return `${this.round}:${key}`;
  }

  private namesOf(keys: readonly string[]): string | string[] {
    const names = keys.map((key) => this.nameOf(key));
    return names.length === 1 ? names[0]! : names;
  }
}
