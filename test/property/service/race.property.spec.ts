import fc from 'fast-check';
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { LockAbortedError, LockNotAcquiredError, type LockService } from 'nest-redis-lock';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';
import { runs } from '../../support/property/runs.js';
import { SlowStore } from './slow-store.js';
import { serviceOn, UNUSED } from './world.js';

const SERVICES = 2;
const KEYS = ['a', 'b'];

/** What one caller does, in this order. A step is a moment in which others may come in between. */
interface Plan {
  readonly service: number;
  readonly keys: readonly string[];
  readonly waitMs: number;
  readonly worksForSteps: number;
  /** Gives up after so many steps, wherever it is then. */
  readonly abortsAfterSteps: number | undefined;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  service: fc.nat(SERVICES - 1),
  keys: fc.constantFrom(['a'], ['a'], ['b'], ['a', 'b'], ['b', 'a']),
  waitMs: fc.constantFrom(0, 30, 1_000, Infinity),
  worksForSteps: fc.nat(3),
  abortsAfterSteps: fc.option(fc.nat(8), { nil: undefined }),
});

/** Sees to it that each key has one worker at a time, with a greater token than all before. */
class Register {
  private readonly workers = new Map<string, number>();
  private readonly tokens = new Map<string, number>();
  entered = 0;

  enter(lease: Lease): void {
    this.entered += 1;
    for (const key of lease.keys) {
      expect(this.workers.get(key) ?? 0, `nobody else works on ${key}`).toBe(0);
      this.workers.set(key, 1);
      expect(lease.tokenFor(key)).toBeGreaterThan(this.tokens.get(key) ?? 0);
      this.tokens.set(key, lease.tokenFor(key));
    }
  }

  leave(lease: Lease): void {
    for (const key of lease.keys) this.workers.set(key, 0);
  }
}

const perform = async (
  { keys, waitMs, worksForSteps, abortsAfterSteps }: Plan,
  locks: LockService,
  register: Register,
  step: (what: string) => Promise<void>,
): Promise<void> => {
  const caller = new AbortController();
  const giveUp = async (steps: number): Promise<void> => {
    for (let i = 0; i < steps; i += 1) await step('impatience');
    caller.abort();
  };
  const impatience = abortsAfterSteps === undefined ? undefined : giveUp(abortsAfterSteps);
  const section = async (lease: Lease): Promise<void> => {
    register.enter(lease);
    for (let i = 0; i < worksForSteps; i += 1) await step('work');
    register.leave(lease);
  };
  try {
    await locks.withLock(keys, { waitMs, signal: caller.signal }, section);
  } catch (error) {
    if (!(error instanceof LockNotAcquiredError || error instanceof LockAbortedError)) throw error;
  }
  await impatience;
  expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
};

/** Nobody is served as late as this, unless by the end of a lease: then a wake-up was missed. */
const LATE_MS = 20_000;

describe('several services, whose requests and answers come whenever they like', () => {
  it('keep each key for one at a time, serve who waits, and leave nothing', async () => {
    let entered = 0;
    const plans = fc.array(plan, { minLength: 2, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        plans,
        fc.infiniteStream(fc.nat(3)),
        async (scheduler, callers, luck) => {
          const runtime = new VirtualRuntime();
          const space = new MemorySpace({ now: () => runtime.now() });
          const services = Array.from({ length: SERVICES }, (_, i) =>
            serviceOn(new SlowStore(space, scheduler, `service ${i}`), runtime),
          );
          const register = new Register();
          const step = async (what: string): Promise<void> => {
            await scheduler.schedule(Promise.resolve(), what);
          };
          let running = callers.length;
          const work = callers.map((one) =>
            perform(one, services[one.service]!, register, step).finally(() => (running -= 1)),
          );
          const all = Promise.allSettled(work);
          const isUnused = ({ usage }: LockService): boolean =>
            Object.values(usage).every((size) => size === 0);
          const isOver = (): boolean => running === 0 && scheduler.count() === 0 && services.every(isUnused);
          // Whatever may happen next happens, in any order; time passes in between, and when nothing else is left to happen.
          while (!isOver()) {
            if (scheduler.count() > 0 && luck.next().value > 0) await scheduler.waitOne();
            else await runtime.pass(10);
            if (runtime.now() > LATE_MS) break;
          }
          expect(running, 'everybody was served').toBe(0);
          for (const outcome of await all) if (outcome.status === 'rejected') throw outcome.reason;
          for (const { usage } of services) expect(usage).toEqual(UNUSED);
          expect(space.size).toEqual({ holds: 0, watches: 0 });
          for (const key of KEYS) expect(space.inspect(`lock:${key}`)).toBeNull();
          entered += register.entered;
        },
      ),
      runs(1_000),
    );
    expect(entered).toBeGreaterThan(0);
  });
});
