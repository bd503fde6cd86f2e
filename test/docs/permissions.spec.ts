import { Test, type TestingModule } from '@nestjs/testing';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { RecordingLogger } from '../nest/support/recording-logger.js';
import { RedisServer } from '../support/redis-server.js';
import { aclRules } from '../support/acl-user.js';

const PASSWORD = 'secret';
const COMMAND_TIMEOUT_MS = 1_000;

const rules = aclRules(PASSWORD);

const commands = rules.filter((rule) => rule.startsWith('+'));

describe.each([
  ['without TLS', false],
  ['over TLS', true],
])('the ACL user of the documentation, %s,', (_, tls) => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await RedisServer.start({ tls });
  });

  afterAll(async () => {
    await redis.stop();
  });

  const start = async (): Promise<TestingModule> => {
    const module = await Test.createTestingModule({
      imports: [
        RedisLockModule.forRoot({
          redis: { ...redis.clientOptions(), username: 'locks', password: PASSWORD, db: 1 },
          commandTimeoutMs: COMMAND_TIMEOUT_MS,
          waitMs: 100,
          shutdownGraceMs: 10,
        }),
      ],
    })
      .setLogger(new RecordingLogger())
      .compile();
    return module.init();
  };

  type Step = (locks: LockService, others: LockService) => Promise<unknown>;

  const everythingElse: readonly Step[] = [
    (locks) => locks.ping(),
    (locks) => locks.withLock('a', (lease) => lease.extend(60_000)),
    async (locks, others) => {
      await using _held = await others.acquire('b');
      expect(await locks.tryAcquire('b', { waitMs: 100 })).toBeNull();
    },
    async (locks) => {
      await locks.acquire('c');
      await locks.inspect('c');
    },
    (locks) => locks.forceUnlock('d'),
    async (locks) => {
      await locks.acquire('e');
      await locks.forceUnlock('e');
    },
    async (locks) => {
      await redis.cli('SCRIPT', 'FLUSH');
      await locks.withLock('f', () => undefined);
    },
  ];

  /** An acquire that Redis executes and answers only when nobody waits for the answer any more. */
  const unanswered: Step = async (locks) => {
    await locks.ping();
    await redis.cli('CLIENT', 'PAUSE', COMMAND_TIMEOUT_MS + 100);
    await expect(locks.acquire('g')).rejects.toMatchObject({ outcome: 'unknown' });
    await until(async () => (await redis.cli('PING')) === 'PONG');
    await until(() => locks.usage.undoing === 0, { timeoutMs: 2_000 });
  };

  /** Runs the steps as a user with these rules; `onFailure` gets what a step throws. Answers what Redis refused. */
  const refusedTo = async (
    rulesOfUser: readonly string[],
    steps: readonly Step[],
    onFailure: (error: unknown) => void,
  ): Promise<string[]> => {
    await redis.cli('FLUSHALL');
    await redis.cli('ACL', 'SETUSER', 'locks', 'reset', 'on', ...rulesOfUser);
    await redis.cli('ACL', 'LOG', 'RESET');
    const [module, other] = [await start(), await start()];
    for (const step of steps) await step(module.get(LockService), other.get(LockService)).catch(onFailure);
    await Promise.all([module.close(), other.close()]);
    const log = (await redis.cli('ACL', 'LOG')) as unknown[][];
    return log.map((entry) => String(entry[entry.indexOf('object') + 1]));
  };

  const refusedWithout = (rule: string, steps: readonly Step[]): Promise<string[]> =>
    // What fails then is another matter; Redis has noted why.
    refusedTo(
      rules.filter((candidate) => candidate !== rule),
      steps,
      () => undefined,
    );

  it('may do all that the library does', async () => {
    const failures: unknown[] = [];
    const refused = await refusedTo(rules, [...everythingElse, unanswered], (error) => failures.push(error));
    expect({ failures, refused }).toEqual({ failures: [], refused: [] });
  });

  it('needs +client|kill, to be sure of a command that was not answered', async () => {
    expect(await refusedWithout('+client|kill', [unanswered])).toContain('client|kill');
  });

  // `client|id` is asked for only where CLIENT INFO is not known: before Redis 6.2.
  const others = commands.filter((command) => !['+client|kill', '+client|id'].includes(command));
  it.each(others)('needs %s', async (command) => {
    expect(await refusedWithout(command, everythingElse)).toContain(command.slice(1));
  });

  it('may not touch any other key or channel', async () => {
    await redis.cli('ACL', 'SETUSER', 'locks', 'reset', 'on', ...rules);
    const mayRun = (...command: string[]) => redis.cli('ACL', 'DRYRUN', 'locks', ...command);
    expect(await mayRun('GET', 'lock:a')).toBe('OK');
    expect(await mayRun('GET', 'session:a')).toMatch(/no permissions to access the 'session:a' key/);
    expect(await mayRun('PUBLISH', 'news', '0')).toMatch(/no permissions to access the 'news' channel/);
    expect(await mayRun('FLUSHALL')).toMatch(/no permissions to run the 'flushall' command/);
  });
});
