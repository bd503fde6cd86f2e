import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as index from 'nest-redis-lock';
import * as fencing from 'nest-redis-lock/fencing';
import * as mysql from 'nest-redis-lock/mysql';
import * as opentelemetry from 'nest-redis-lock/opentelemetry';
import * as postgres from 'nest-redis-lock/postgres';
import * as redis from 'nest-redis-lock/redis';
import * as store from 'nest-redis-lock/store';
import * as testing from 'nest-redis-lock/testing';
import * as zookeeper from 'nest-redis-lock/zookeeper';
import { LockConfigurationError, LockKeyError } from 'nest-redis-lock';
import { formatValue } from '../../../lib/core/util/describe.js';
import { isEmptyObject } from './option.js';
import { messageOf, outcomeOf } from './refusal.js';

const ENTRIES = { index, fencing, mysql, opentelemetry, postgres, redis, store, testing, zookeeper };

/** An argument: a good one, and which kinds of values are good, too. An object is one of options unless it is `open`. */
interface Argument {
  readonly good: unknown;
  readonly also?: readonly string[];
  readonly isOpen?: true;
}

interface Row {
  readonly args: readonly Argument[];
  readonly call: (...args: never[]) => unknown;
}

const row = (call: Row['call'], ...args: readonly Argument[]): Row => ({ args, call });
const options = (good: object = {}, ...also: readonly string[]): Argument => ({ good, also });
/** Options that may be left out. */
const optional = (good: object = {}): Argument => options(good, 'undefined');
const given = (good: unknown, ...also: readonly string[]): Argument => ({ good, also, isOpen: true });

const locks = testing.createTestingLocks();
const lease = await locks.acquire('k');
const factory = { useFactory: () => ({ store: new testing.MemoryStore() }) };
const runStatement = (_sql: string, names: readonly unknown[]) => names.map((name) => ({ name }));
const tx = given(runStatement);
const sqlite = { dialect: 'sqlite' };

/** A disabled one: else it has a span for each hold of the files after this one, which share the process. */
const instrumentation = (one?: object): opentelemetry.RedisLockInstrumentation => {
  const created = new opentelemetry.RedisLockInstrumentation(one);
  created.disable();
  return created;
};

class Shop {
  async sell(): Promise<void> {}
}
index.Locked('k')(
  Shop.prototype,
  'sell',
  Object.getOwnPropertyDescriptor(Shop.prototype, 'sell') as TypedPropertyDescriptor<() => Promise<void>>,
);

/** The exported functions, constructors and methods that take arguments, unless another table has them. */
const ROWS: Readonly<Record<string, Row>> = {
  'index.InjectLockService': row(index.InjectLockService, given('billing', 'string', 'undefined')),
  'index.getLockServiceToken': row(index.getLockServiceToken, given('billing', 'string', 'undefined')),
  'index.detached': row(
    index.detached,
    given(() => 1),
  ),
  'index.findLease': row(index.findLease, given('k', 'string', 'undefined')),
  'index.runOrDelay': row(
    index.runOrDelay,
    given({ moveToDelayed: () => Promise.resolve() }),
    given('token', 'string'),
    given(() => 1),
    optional({ delayMs: 1 }),
  ),
  'index.LockExceptionFilter': row(
    (adapter, one) => new index.LockExceptionFilter(adapter, one),
    given({}, 'object', 'undefined', 'null'),
    optional({ takenStatus: 409 }),
  ),
  'index.Lease.run': row(
    (section) => lease.run(section),
    given(() => 1),
  ),
  'index.RedisLockModule.forRootAsync': row(
    (one) => index.RedisLockModule.forRootAsync(one),
    options(factory),
  ),
  'fencing.fenceTransaction': row(fencing.fenceTransaction, tx, given(lease), optional(sqlite)),
  'fencing.migrateFencing': row(fencing.migrateFencing, tx, options(sqlite)),
  'fencing.sweepFences': row(fencing.sweepFences, tx, options({ ...sqlite, olderThanDays: 1 })),
  'mysql.MysqlStore': row((one) => new mysql.MysqlStore(one), options({ uri: 'mysql://a@127.0.0.1:1/a' })),
  'postgres.PostgresStore': row(
    (one) => new postgres.PostgresStore(one),
    options({ connectionString: 'postgres://a@127.0.0.1:1/a' }),
  ),
  'zookeeper.ZooKeeperStore': row(
    (one) => new zookeeper.ZooKeeperStore(one),
    options({ connect: '127.0.0.1:1' }),
  ),
  'opentelemetry.RedisLockInstrumentation': row(instrumentation, optional({ keys: true })),
  'opentelemetry.RedisLockInstrumentation.setConfig': row(
    (one) => instrumentation().setConfig(one),
    optional({ keys: true }),
  ),
  'redis.QuorumStore': row(
    (one) => new redis.QuorumStore(one),
    options({ nodes: [new testing.MemoryStore(), new testing.MemoryStore()] }),
  ),
  'testing.MemorySpace': row((one) => new testing.MemorySpace(one), optional()),
  'testing.MemoryStore': row((one) => new testing.MemoryStore(one), optional()),
  'testing.createTestingLocks': row(testing.createTestingLocks, given('off', 'undefined'), optional()),
  'testing.bindLocks': row(testing.bindLocks, given(new Shop()), given(locks, 'object', 'function')),
  'testing.LockTesting.hold': row(
    (key, one) => locks.testing.hold(key, one),
    given('held', 'string'),
    optional({ waitMs: 0 }),
  ),
  'testing.LockTesting.elect': row((key) => locks.testing.elect(key), given('k')),
  'testing.LockTesting.revoke': row((key) => locks.testing.revoke(key), given('k')),
  'testing.LockTesting.loseEverywhere': row(
    (scenario, one) => locks.testing.loseEverywhere(scenario, one),
    given(() => 1),
    options({ writes: [[new Shop(), 'sell']] }),
  ),
  'testing.RedisLockTestingModule.forRoot': row(
    (one) => testing.RedisLockTestingModule.forRoot(one),
    optional(),
  ),
  'testing.RedisLockTestingModule.forRootAsync': row(
    (one) => testing.RedisLockTestingModule.forRootAsync(one),
    options(factory),
  ),
};

/** Rows of `places.ts` and `arguments.spec.ts`, with the values that an option takes. */
const ELSEWHERE = [
  'index.createLockService',
  'index.withLocks',
  'index.Locked',
  'index.Limited',
  'index.Leader',
  'index.lockKey',
  'index.currentLease',
  'index.RedisLockModule.forRoot',
  'index.CountDownLatch.wait',
  'index.CountDownLatch.tryWait',
  'index.Permits.acquire',
  'index.Permits.tryAcquire',
  'index.Permits.withPermit',
  'index.Semaphore.acquire',
  'index.Semaphore.tryAcquire',
  'redis.RedisStore',
  // It is created by a store, which the conformance tests check.
  'store.StoreQueueEntry',
  // Nest creates it.
  'index.RedisLockModule',
  'testing.RedisLockTestingModule',
  'index.LockHealthIndicator',
];

/** Functions, constructors and methods with options, in the report of an entry. Errors refuse nothing: they would hide another. */
const inReport = (entry: keyof typeof ENTRIES): string[] => {
  const report = readFileSync(new URL(`../../../docs/api/${entry}.api.md`, import.meta.url), 'utf8');
  return report.split(/^(?=export )/m).flatMap((text) => {
    const name = /^export (?:declare )?(?:class|const|function) (\w+)/.exec(text)?.[1];
    if (name === undefined || /^export const \w+(: Readonly|: typeof \w+_2| =)/.test(text)) return [];
    if (/^export const \w+: LeaseModel|^export class \w+ extends (Error|LockError|HttpException)/.test(text))
      return [];
    if (!text.startsWith('export class')) return [`${entry}.${name}`];
    const members = [
      ...text.matchAll(/^ {4}(?:static )?(\w+)(?:<\w+>)?\(\w+\??: [^\n]*(options|config|section)\b/gm),
    ];
    const methods = members.map(([, method]) => method!).filter((method) => method !== 'constructor');
    return [
      ...(/^ {4}constructor\(/m.test(text) ? [`${entry}.${name}`] : []),
      ...[...text.matchAll(/^ {4}static (\w+)\(/gm)].map(([, method]) => `${entry}.${name}.${method}`),
      ...methods.map((method) => `${entry}.${name}.${method}`),
      ...(/^ {4}run<T>\(/m.test(text) ? [`${entry}.${name}.run`] : []),
    ];
  });
};

const ALL = Object.keys(ENTRIES).flatMap((entry) => inReport(entry as keyof typeof ENTRIES));

const VALUES: readonly unknown[] = [
  7,
  NaN,
  'nothing',
  '',
  true,
  null,
  undefined,
  [],
  Symbol('s'),
  1n,
  {},
  () => 1,
];

const isGood = ({ good, also = [], isOpen }: Argument, value: unknown): boolean =>
  also.includes(value === null ? 'null' : typeof value) ||
  (typeof good === 'function' && typeof value === 'function') ||
  (!isOpen && also.includes('undefined') && isEmptyObject(value));

const expectRefused = async (id: string, args: readonly unknown[], name: RegExp): Promise<void> => {
  const outcome = await outcomeOf(() => ROWS[id]!.call(...(args as never[])));
  const error = 'thrown' in outcome ? outcome.thrown : `accepted: ${args.map(formatValue).join(', ')}`;
  expect(
    [LockConfigurationError, LockKeyError].some((kind) => error instanceof kind),
    String(error),
  ).toBe(true);
  expect(messageOf(outcome)).toMatch(name);
};

describe('what the package exports', () => {
  it('has a row for each function, constructor and method with options', () => {
    const missing = ALL.filter((id) => !(id in ROWS) && !ELSEWHERE.includes(id));
    expect(missing).toEqual([]);
  });

  it.each(Object.keys(ROWS))(
    '%s refuses each unknown option by its name, and not an undefined one',
    async (id) => {
      const { args, call } = ROWS[id]!;
      const good = args.map((one) => one.good);
      for (const [at, { isOpen }] of args.entries()) {
        if (isOpen) continue;
        const unknown = good.with(at, { ...(good[at] as object), unlikely: 1 });
        await expectRefused(id, unknown, /\bunlikely is no option of /);
        const taken = await outcomeOf(() =>
          call(...(good.with(at, { ...(good[at] as object), unlikely: undefined }) as never[])),
        );
        expect(messageOf(taken)).not.toContain('unlikely');
      }
    },
  );

  it.each(Object.keys(ROWS))(
    '%s refuses each argument of a wrong type by an error of this package',
    async (id) => {
      const { args } = ROWS[id]!;
      for (const [at, argument] of args.entries())
        for (const value of VALUES)
          if (!isGood(argument, value))
            await expectRefused(id, args.map(({ good }) => good).with(at, value), /./);
    },
  );
});
