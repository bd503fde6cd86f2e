import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockError, withLocks } from 'nest-redis-lock';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { Log } from '../../support/core/core-under-test.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';
import { runs } from '../../support/property/runs.js';
import { SlowStore } from './slow-store.js';
import { UNUSED } from './world.js';

const SERVICES = 2;

/** How a caller takes its keys. */
const HOWS = ['section', 'nested', 'lease', 'permit', 'locks of both services'] as const;

/** What one caller does. A step is a moment in which others may come in between. */
interface Plan {
  readonly how: (typeof HOWS)[number];
  readonly service: number;
  readonly keys: readonly string[];
  readonly kind: object;
  readonly waitMs: number;
  readonly leaseMs: number | undefined;
  readonly awaitRelease: boolean;
  readonly worksForSteps: number;
  readonly abortsAfterSteps: number | undefined;
  readonly forcesUnlock: boolean;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  how: fc.constantFrom(...HOWS),
  service: fc.nat(SERVICES - 1),
  keys: fc.constantFrom(['a'], ['a'], ['b'], ['a', 'b'], ['a', 'b', 'c']),
  kind: fc.constantFrom({}, {}, { mode: 'fair' }, { mode: 'read' }, { mode: 'write' }),
  waitMs: fc.constantFrom(0, 30, 1_000),
  leaseMs: fc.constantFrom(undefined, undefined, 40),
  awaitRelease: fc.boolean(),
  worksForSteps: fc.nat(4),
  abortsAfterSteps: fc.option(fc.nat(8), { nil: undefined }),
  forcesUnlock: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
});

/** What the events of one service report of each key. */
class Balance {
  readonly keys = new Map<string, { acquired: number; released: number; lost: number }>();
  /** Ends that were reported before the beginning. */
  readonly endedFirst: string[] = [];

  constructor(locks: LockService) {
    for (const event of ['acquired', 'released', 'lost'] as const) {
      locks.on(event, ({ key }) => {
        const counts = this.keys.get(key) ?? { acquired: 0, released: 0, lost: 0 };
        counts[event] += 1;
        this.keys.set(key, counts);
        if (counts.released + counts.lost > counts.acquired) this.endedFirst.push(`${event} ${key}`);
      });
    }
  }

  get count(): number {
    return [...this.keys.values()].reduce((sum, { acquired }) => sum + acquired, 0);
  }
}

type Step = (what: string) => Promise<void>;

const perform = async (one: Plan, services: readonly LockService[], step: Step): Promise<void> => {
  const { how, keys, kind, waitMs, leaseMs, awaitRelease } = one;
  const locks = services[one.service]!;
  const caller = new AbortController();
  const giveUp = async (steps: number): Promise<void> => {
    for (let i = 0; i < steps; i += 1) await step('impatience');
    caller.abort();
  };
  const impatience = one.abortsAfterSteps === undefined ? undefined : giveUp(one.abortsAfterSteps);
  const options = { waitMs, leaseMs, signal: caller.signal };
  const section = async (): Promise<void> => {
    for (let i = 0; i < one.worksForSteps; i += 1) await step('work');
    if (one.forcesUnlock) await locks.forceUnlock('a');
  };
  const run = async (): Promise<void> => {
    switch (how) {
      case 'section':
        return locks.withLock(keys, { ...options, ...kind, awaitRelease }, section);
      case 'nested':
        return locks.withLock(keys, { ...options, ...kind, awaitRelease }, (inside) =>
          locks.withLock(keys, { ...options, ...kind, inside }, section),
        );
      case 'permit':
        return locks.permits('permit', { permits: 2 }).withPermit(options, section);
      case 'lease': {
        const lease = await locks.acquire(keys, { ...options, ...kind });
        await section();
        await lease.release();
        return;
      }
      case 'locks of both services': {
        const all = keys.flatMap((key) => services.map((service) => ({ service, key })));
        return withLocks(all, { ...options, ...kind }, section);
      }
    }
  };
  // What its caller is told is tested elsewhere.
  await run().catch((error: unknown) => {
    if (!(error instanceof LockError)) throw error;
  });
  await impatience;
};

describe('when every lease has ended, the events of each key balance: acquired = released + lost', () => {
  it('over random programs, with aborts, forced unlocks, leases that run out, a failing store, and a shutdown', async () => {
    let leases = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(plan, { minLength: 1, maxLength: 8 }),
        fc.infiniteStream(fc.nat(30)),
        fc.option(fc.nat(40), { nil: undefined }),
        async (scheduler, plans, luck, shutsDownAfter) => {
          const runtime = new VirtualRuntime();
          const space = new MemorySpace({ now: () => runtime.now() });
          const fails = (): StoreFailure | undefined =>
            luck.next().value === 0 ? new StoreFailure('no answer', 'unknown') : undefined;
          const managers = Array.from({ length: SERVICES }, (_, i) => {
            const store = new SlowStore(space, scheduler, `service ${i}`, fails);
            const settings = resolveSettings({ shutdownGraceMs: 50 });
            return new LockManager(store, settings, new Log(), runtime);
          });
          const services = managers.map((manager) => new LockService(manager));
          const balances = services.map((locks) => new Balance(locks));
          const step: Step = (what) => scheduler.schedule(Promise.resolve(), what);
          let running = plans.length;
          const work = plans.map((one) => perform(one, services, step).finally(() => (running -= 1)));
          const all = Promise.allSettled(work);
          const isUnused = ({ usage }: LockService): boolean =>
            Object.values(usage).every((size) => size === 0);
          for (let steps = 0; ; steps += 1) {
            if (steps === shutsDownAfter) for (const manager of managers) void manager.shutDown();
            if (running === 0 && scheduler.count() === 0 && services.every(isUnused)) break;
            if (scheduler.count() > 0 && luck.next().value > 7) await scheduler.waitOne();
            else await runtime.pass(10);
            expect(runtime.now(), 'everything ends').toBeLessThan(600_000);
          }
          for (const outcome of await all) if (outcome.status === 'rejected') throw outcome.reason;
          for (const { usage } of services) expect(usage).toEqual(UNUSED);
          for (const { keys, endedFirst } of balances) {
            expect(endedFirst).toEqual([]);
            for (const [key, counts] of keys) {
              expect(counts, key).toMatchObject({ acquired: counts.released + counts.lost });
            }
          }
          for (const { count } of balances) leases += count;
        },
      ),
      runs(1_000),
    );
    expect(leases).toBeGreaterThan(0);
  });
});
