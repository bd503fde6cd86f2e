import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockError, type Lease } from 'nest-redis-lock';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { Log } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';
import { runs } from '../../support/property/runs.js';
import { SlowStore } from './slow-store.js';

const WATCHDOG_MS = 1_000;
const MAX_STEPS = 3_000;
/** A request that keeps a key until a moment is on its way for less, and asks for what was left when it was sent. */
const TRANSIT_MS = 2_000;

/** What one caller does, and its nested calls. A step is a moment in which others may come in between. */
interface Plan {
  readonly mode: 'read' | 'write' | undefined;
  readonly leaseMs: number | undefined;
  readonly holdAtLeastMs: number;
  readonly startsAfterSteps: number;
  readonly extendsBy: number | undefined;
  readonly awaitsExtension: boolean;
  readonly downgrades: boolean;
  readonly inner: readonly Plan[];
  readonly worksForSteps: number;
}

const planWith = (inner: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> =>
  fc.record({
    mode: fc.constantFrom('read', 'read', 'read', 'write', undefined),
    leaseMs: fc.constantFrom(undefined, undefined, undefined, 700),
    holdAtLeastMs: fc.constantFrom(0, 0, 0, 3_000),
    startsAfterSteps: fc.nat(4),
    extendsBy: fc.constantFrom(undefined, undefined, 6_000, 20_000),
    awaitsExtension: fc.boolean(),
    downgrades: fc.boolean(),
    inner: fc.array(inner, { maxLength: 2 }),
    worksForSteps: fc.nat(4),
  });
const leaf = planWith(fc.constant<Plan>(undefined as never)).map((one): Plan => ({ ...one, inner: [] }));
const plan = planWith(planWith(leaf));

/** What a lease asks for while it is open. */
interface Open {
  readonly lease: Lease;
  /** Until when its minimum keeps the key. */
  readonly keptUntil: number;
  /** Until when it asked for at least, whatever its lease. */
  requestedUntil: number;
}

type Step = () => Promise<void>;

/** Runs the plans, and calls `look` after each step: `quiet` when nothing is on its way. */
const play = async (
  scheduler: fc.Scheduler,
  plans: readonly Plan[],
  luck: () => number,
  fails: () => StoreFailure | undefined,
  look: (open: ReadonlySet<Open>, space: MemorySpace, now: number, quiet: boolean) => void,
): Promise<void> => {
  const runtime = new VirtualRuntime();
  const space = new MemorySpace({ now: () => runtime.now() });
  const store = new SlowStore(space, scheduler, 'the service', fails);
  const settings = resolveSettings({ keyPrefix: '', watchdogMs: WATCHDOG_MS });
  const locks = new LockService(new LockManager(store, settings, new Log(), runtime));
  const open = new Set<Open>();
  let working = 0;
  const step: Step = async () => {
    working += 1;
    await scheduler.schedule(Promise.resolve(), 'work');
    working -= 1;
  };
  const steps = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) await step();
  };

  const perform = async (one: Plan, outer?: Lease): Promise<void> => {
    const { mode, leaseMs, holdAtLeastMs, extendsBy } = one;
    await steps(one.startsAfterSteps);
    const options = { waitMs: 10_000, ...(mode && { mode }), leaseMs, holdAtLeastMs, inside: outer };
    await locks.withLock('k', options, async (lease) => {
      const keptUntil = runtime.now() + holdAtLeastMs;
      const mine: Open = { lease, keptUntil, requestedUntil: keptUntil };
      open.add(mine);
      try {
        if (extendsBy !== undefined) {
          // It counts in the store from when it arrives there.
          mine.requestedUntil = Infinity;
          const extended = lease
            .extend(extendsBy)
            .catch((error: unknown) => {
              if (!(error instanceof LockError)) throw error;
            })
            .finally(() => (mine.requestedUntil = Math.max(keptUntil, runtime.now() + extendsBy)));
          if (one.awaitsExtension) await extended;
        }
        if (one.downgrades && mode === 'write' && !outer) await lease.downgrade();
        for (const inner of one.inner) await perform(inner, lease);
        await steps(one.worksForSteps);
      } finally {
        // A minimum concerns the key: it is kept until then, however early the call ends.
        mine.requestedUntil = mine.keptUntil;
        if (mine.keptUntil <= runtime.now()) open.delete(mine);
      }
    });
  };

  let running = plans.length;
  const work = plans.map((one) =>
    perform(one)
      // Other tests check the errors of callers.
      .catch((error: unknown) => {
        if (!(error instanceof LockError)) throw error;
      })
      .finally(() => (running -= 1)),
  );
  const all = Promise.allSettled(work);
  for (let count = 0; running > 0 && count < MAX_STEPS; count += 1) {
    if (scheduler.count() > 0 && luck() > 3) await scheduler.waitOne();
    else await runtime.pass(100);
    await settled();
    look(open, space, runtime.now(), scheduler.count() === working);
  }
  expect(running, 'everything ends').toBe(0);
  for (const outcome of await all) if (outcome.status === 'rejected') throw outcome.reason;
};

/** What the store has of an owner still, in ms. */
const leftIn = (space: MemorySpace, owner: string): number =>
  space.inspect('k')?.holders.find((holder) => holder.owner === owner)?.remainingMs ?? 0;

const programs = [
  fc.scheduler(),
  fc.array(plan, { minLength: 1, maxLength: 5 }),
  fc.infiniteStream(fc.nat(30)),
] as const;

describe('over shared, nested, handed-off and downgraded holds', () => {
  it('no extension and no lease outlives the call that asked for it', async () => {
    let looked = 0;
    await fc.assert(
      fc.asyncProperty(...programs, async (scheduler, plans, stream) => {
        const luck = (): number => stream.next().value!;
        await play(
          scheduler,
          plans,
          luck,
          () => undefined,
          (open, space, now, quiet) => {
            if (!quiet) return;
            for (const owner of new Set([...open].map(({ lease }) => lease.owner))) {
              const others = [...open].filter((one) => one.lease.owner === owner);
              // A lost hold is released when its last section ends. Until then it is neither renewed nor cut. A lease
              // that ended before the loss, and whose minimum keeps the key, has not heard of it.
              if (others.some(({ lease }) => lease.lost)) continue;
              const requested =
                Math.max(...others.map(({ requestedUntil }) => requestedUntil)) - now + TRANSIT_MS;
              looked += 1;
              expect(leftIn(space, owner)).toBeLessThanOrEqual(Math.max(WATCHDOG_MS, requested));
            }
          },
        );
      }),
      runs(40),
    );
    expect(looked).toBeGreaterThan(0);
  });

  it('no lease counts on more than the store has, also where requests fail', async () => {
    await fc.assert(
      fc.asyncProperty(...programs, async (scheduler, plans, stream) => {
        const luck = (): number => stream.next().value!;
        const fails = (): StoreFailure | undefined =>
          luck() === 0 ? new StoreFailure('no answer', 'unknown') : undefined;
        await play(scheduler, plans, luck, fails, (open, space) => {
          for (const { lease } of open) {
            expect(lease.remainingMs()).toBeLessThanOrEqual(leftIn(space, lease.owner));
          }
        });
      }),
      runs(40),
    );
  });
});
