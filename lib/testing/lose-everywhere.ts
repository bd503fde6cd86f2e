import { LockConfigurationError } from '../core/errors/lock.errors.js';
import type { Lease } from '../core/lease/lease.js';
import { checkFunction, checkObject, invalidOption, reading } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { isArray } from '../core/util/describe.js';
import type { HeldLock } from '../core/service/held-locks.js';
import { detached } from '../core/nesting/section.js';
import type { LockService } from '../nest/service/lock.service.js';
import { LossReport, type UnfencedWrite } from './loss-report.js';
import { asides, LossRun, type Loss } from './loss-run.js';
import { WatchedCalls } from './watched-calls.js';

/** An object, and the names of its methods that write. */
export type WritingMethods = readonly [target: object, ...methods: string[]];

/** Options of `testing.loseEverywhere`. Give `databases`, `writes`, or both. */
export interface LoseEverywhereOptions {
  /**
   * TypeORM data sources, pools or connections of `pg` or `mysql2/promise`. Each statement is a step, and writes are
   * recognized. Default: none.
   */
  readonly databases?: readonly object[] | undefined;
  /**
   * Objects with their methods that write elsewhere, and return promises: `[[payments, 'charge']]`. Each call is a step and a
   * write. The report does not see what it does inside, and whether a fence covers it. Default: none.
   */
  readonly writes?: readonly WritingMethods[] | undefined;
  /**
   * Work of the next holder while the section has lost its lock, with the later lease. It runs only at steps outside of a
   * transaction, and its own calls are not watched. Default: it only acquires and releases the lock.
   */
  readonly meanwhile?: ((lease: Lease) => unknown) | undefined;
  /** Function that returns true for an entry that needs no look, such as a log. Default: each entry counts. */
  readonly except?: ((write: UnfencedWrite) => boolean) | undefined;
}

const NAMES: Names<LoseEverywhereOptions> = { databases: true, writes: true, meanwhile: true, except: true };

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

const checkOptions = (options: LoseEverywhereOptions): void => {
  const name = 'The options of testing.loseEverywhere';
  checkObject(name, 'an object such as { databases: [dataSource] }', options);
  reading(name, () => {
    checkNames(options, 'testing.loseEverywhere', NAMES);
    const { databases = [], writes = [], meanwhile, except } = options;
    if (!isArray(databases) || !databases.every(isObject))
      invalidOption('databases', 'a list of objects', databases);
    if (!isArray(writes) || !writes.every((one) => isArray(one) && isObject(one[0]) && one.length > 1))
      invalidOption('writes', 'a list of [object, names of its methods]', writes);
    checkFunction('meanwhile', meanwhile);
    checkFunction('except', except);
    if (databases.length + writes.length === 0)
      throw new LockConfigurationError(
        'testing.loseEverywhere watches nothing: pass databases, writes, or both.',
      );
  });
};

/** A scenario with more steps is a mistake: each step costs two runs. */
const MAX_STEPS = 1_000;

/** Runs a scenario again and again, and takes its locks away before one watched call after the other. */
class LoseEverywhere {
  private readonly calls = new WatchedCalls();
  private runs = 0;
  /** Error of `meanwhile`: it belongs to the test, and not to the section. */
  private broken: { readonly error: unknown } | undefined;

  constructor(
    private readonly locks: LockService,
    private readonly outside: LockService,
    private readonly options: LoseEverywhereOptions,
  ) {}

  async report(scenario: () => unknown): Promise<LossReport> {
    const { databases = [], writes = [], except = () => false } = this.options;
    try {
      for (const database of databases) this.calls.database(database);
      for (const [target, ...names] of writes) for (const name of names) this.calls.method(target, name);
      const first = await this.runWith(scenario, { lossAt: 0, noticed: false, refuses: false });
      if (first.failure) throw first.failure.error;
      this.checkSeen(first.run);
      const all = [first, ...(await this.allRuns(scenario, first.run.writes))];
      this.checkCalled();
      const unfenced = all.flatMap(({ run }) => run.unfenced).filter((write) => !isExcepted(except, write));
      const failed = all.filter(({ failure }) => failure).length;
      return new LossReport(first.run.steps, this.runs, first.run.writes, failed, unfenced);
    } finally {
      this.calls.restore();
    }
  }

  /**
   * Runs the scenario with a loss before each step, until it ends without reaching the step.
   *
   * @param writes number of writes of the first run; the last run loses nothing either, and makes as many
   */
  private async allRuns(scenario: () => unknown, writes: number): Promise<Ran[]> {
    const all: Ran[] = [];
    for (let lossAt = 1; lossAt <= MAX_STEPS; lossAt++) {
      const unnoticed = await this.runWith(scenario, { lossAt, noticed: false, refuses: false });
      const { run, failure } = unnoticed;
      all.push(unnoticed);
      if (!run.isReached && (failure || run.writes < writes)) throw notRepeated(run.writes, writes, failure);
      if (!run.isReached) return all;
      all.push(await this.runWith(scenario, { lossAt, noticed: true, refuses: false }));
      if (run.hasPassed) all.push(await this.runWith(scenario, { lossAt, noticed: false, refuses: true }));
    }
    throw new LockConfigurationError(
      `The scenario of testing.loseEverywhere has more than ${MAX_STEPS} steps: run the use case once in it.`,
    );
  }

  private async runWith(scenario: () => unknown, loss: Loss): Promise<Ran> {
    const run = new LossRun(this.locks, loss, (...lost) => this.lose(...lost));
    if (this.runs++ > 0) await this.endLeftHolds();
    const failure = await this.calls.watch(run, scenario);
    if (this.broken) throw this.broken.error;
    return { run, failure };
  }

  /** Ends what a run left in the store for a minimum time or a window: it would keep the next run out. */
  private async endLeftHolds(): Promise<void> {
    const { locks, outside } = this;
    const live = new Set([...locks.held(), ...outside.held()].map(({ key }) => key));
    for (let cursor, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const page = await outside.list({ cursor });
      for (const { key } of page.locks) if (!live.has(key)) await outside.forceUnlock(key);
      cursor = page.cursor;
    }
  }

  private checkSeen({ steps, writes }: LossRun): void {
    if (steps > 0 && writes > 0) return;
    throw new LockConfigurationError(
      `testing.loseEverywhere saw ${steps === 0 ? 'no call' : 'no write'} of what it watches while the scenario held a ` +
        'lock of this service. Pass the objects that the section uses in databases and writes.',
    );
  }

  /** A method of another object than the service's is never called, and what the service calls is not seen. */
  private checkCalled(): void {
    const [uncalled] = this.calls.uncalled;
    if (uncalled === undefined) return;
    throw new LockConfigurationError(
      `testing.loseEverywhere saw no call of ${uncalled}, which writes names. Pass the object that the use case calls, or leave ` +
        'the method out.',
    );
  }

  /** The store forgets the holds, and the next holder comes and goes. In a pause, this service does not know of it. */
  private lose(held: readonly HeldLock[], noticed: boolean): Promise<void> {
    return detached(async () => {
      const { outside, locks, options, calls } = this;
      for (const { key } of held) await (noticed ? locks : outside).forceUnlock(key);
      const wanted = held
        .filter(({ kind }) => kind !== 'permit')
        .map(({ key, kind }) =>
          kind === 'read' || kind === 'write' ? { key, mode: 'write' as const } : key,
        );
      const lease = wanted.length > 0 ? await outside.tryAcquire(wanted) : null;
      if (!lease) return;
      try {
        if (!calls.isInTransaction) await asides.run(true, () => options.meanwhile?.(lease));
      } catch (error) {
        this.broken ??= { error };
      } finally {
        await lease.release();
      }
    });
  }
}

/** Returns the error for a scenario whose last run made fewer writes than the first, so that not all were tested. */
const notRepeated = (made: number, writes: number, failure: Ran['failure']): LockConfigurationError =>
  new LockConfigurationError(
    `The scenario of testing.loseEverywhere ${failure ? 'failed in' : `made ${made} instead of ${writes} writes in`} a run that lost ` +
      `nothing${failure ? ' (see cause)' : ''}, so its report would mean nothing. Each run has to do the same: begin it with the same ` +
      'data, and release its locks.',
    failure && { cause: failure.error },
  );

/** A promise would count as true. */
const isExcepted = (except: (write: UnfencedWrite) => unknown, write: UnfencedWrite): boolean => {
  const result = except(write);
  if (typeof result === 'boolean') return result;
  if (result instanceof Promise) result.catch(() => undefined);
  return invalidOption('The result of except', 'true or false', result);
};

interface Ran {
  readonly run: LossRun;
  readonly failure: { readonly error: unknown } | undefined;
}

/** See `LockTesting.loseEverywhere`. */
export const loseEverywhere = async (
  locks: LockService,
  outside: LockService,
  scenario: () => unknown,
  options: LoseEverywhereOptions,
): Promise<LossReport> => {
  if (typeof scenario !== 'function')
    invalidOption('The scenario of testing.loseEverywhere', 'a function', scenario);
  checkOptions(options);
  return new LoseEverywhere(locks, outside, options).report(scenario);
};
