import { LockManager } from '../core/service/lock-manager.js';
import type { Lease } from '../core/lease/lease.js';
import type { ServiceGroup } from '../core/context/service-group.js';
import { LockService } from '../nest/service/lock.service.js';
import { MemoryStore } from '../stores/memory/memory.store.js';
import { Elections } from './elections.js';
import { loseEverywhere, type LoseEverywhereOptions } from './lose-everywhere.js';
import type { LossReport } from './loss-report.js';
import { OutsideProcess, type OutsideHoldOptions } from './outside-process.js';
import type { ResolvedTestingOptions } from './testing-options.js';
import { SILENT, testingRuntime } from './testing-runtime.js';

/**
 * Returns a store for mode `off`, where every call gets its own key. One permit is then enough, also for calls that
 * leave the number to the store.
 */
const storeWithoutLimits = (): MemoryStore => {
  const store = new MemoryStore();
  const { permit } = store.kinds;
  const acquire = permit.acquire.bind(permit);
  permit.acquire = ({ of = 1, ...claim }) => acquire({ ...claim, of });
  return store;
};

/** Manager of the locks of a test, and the process beside it. */
export class TestingProcesses {
  readonly manager: LockManager;
  readonly outside: OutsideProcess;

  constructor(
    readonly options: ResolvedTestingOptions,
    group?: ServiceGroup,
  ) {
    const store = options.mode === 'off' ? storeWithoutLimits() : new MemoryStore();
    this.manager = new LockManager(store, options.settings, SILENT, testingRuntime(), group);
    this.outside = new OutsideProcess(store.space, options);
  }

  /** Rejects new callers of the app, and ends holds from outside that its running sections may wait for. */
  refuseNew(): void {
    this.manager.refuseNew();
    void this.outside.close();
  }

  shutDown(): Promise<void> {
    return this.manager.shutDown();
  }

  async close(): Promise<void> {
    await this.outside.close();
    await this.manager.close();
  }
}

/** What a test does to the locks of its app. */
export class LockTesting {
  /** @internal */
  constructor(
    private readonly locks: LockService,
    private readonly outside: OutsideProcess,
    private readonly elections: Elections,
  ) {}

  /**
   * Makes this process the leader of a key: its method with `@Leader`, or function of `locks.lead`, is called. In a test no
   * process is elected by itself. Resolves when the method was called. If it fails at once, rejects with its error. A further
   * call has no effect while this process leads.
   *
   * @throws LockConfigurationError when there is no candidate for the key
   * @throws LockNotAcquiredError when the key is held elsewhere for longer than `maxWaitMs`
   *
   * @example
   * await locks.testing.elect('leader:index');
   * await locks.testing.revoke('leader:index');
   */
  elect(key: string): Promise<void> {
    return this.elections.elect(key);
  }

  /**
   * Takes the leadership of a key away from this process, as a lost lock does. Resolves when the method has settled. Rejects
   * if it has not after `maxWaitMs` (1,000): it ignores its signal.
   *
   * @throws LockConfigurationError when this process does not lead the key, and when the method does not settle
   */
  revoke(key: string): Promise<void> {
    return this.elections.revoke(key);
  }

  /**
   * Holds a key as another process does: with another owner, so that no call of the app is nested in it. Resolves with a
   * lease; `release()` or the end of an `await using` block ends it, and the end of the app at the latest. Write the key as
   * the app does, without the prefix.
   *
   * @throws LockNotAcquiredError when the key is taken
   * @throws LockConfigurationError with `mode: 'off'` of the module, and for invalid options
   *
   * @example
   * await using outside = await locks.testing.hold('order:42');
   * await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
   */
  hold(key: string, options?: OutsideHoldOptions): Promise<Lease> {
    return this.outside.hold(key, options);
  }

  /**
   * Finds the writes of a use case that run without their lock. Runs the scenario again and again. Each time, its locks
   * are lost before the next watched call, and another process gets them. Each loss happens as in a pause, where the
   * section does not know of it, and with an aborted signal. If a fence passed, it is refused in a third run. Resolves
   * with a report of the writes without `fenceTransaction` in their transaction whose lock was not held until their
   * reply, and of what it did not see.
   *
   * Each call under a lock is a step: a statement of `databases`, or a method of `writes`. Between two of them, no other
   * process can see a difference. Work before the first lock prepares the data, and is
   * not judged.
   *
   * @param scenario function that runs the use case once
   * @throws the error of the scenario in the first run, which loses nothing
   * @throws LockConfigurationError when the scenario makes no watched write under a lock, and for invalid options
   *
   * @example
   * const report = await locks.testing.loseEverywhere(() => shop.order('tea'), { databases: [dataSource] });
   * report.throwIfUnfenced();
   */
  async loseEverywhere(scenario: () => unknown, options: LoseEverywhereOptions): Promise<LossReport> {
    return loseEverywhere(this.locks, this.outside.locks('testing.loseEverywhere'), scenario, options);
  }
}

/**
 * Lock service of a test: `LockService`, and what only tests do. Get it from the testing module by this class, or create it
 * with `createTestingLocks`.
 *
 * @example const locks = module.get(TestingLockService);
 */
export class TestingLockService extends LockService {
  readonly testing: LockTesting;

  /** @internal */
  constructor(processes: TestingProcesses) {
    super(processes.manager, processes.options.context, undefined, false);
    this.testing = new LockTesting(
      this,
      processes.outside,
      new Elections(this, processes.manager, processes.options.settings.maxWaitMs),
    );
  }
}
