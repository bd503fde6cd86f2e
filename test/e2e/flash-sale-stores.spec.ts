import { beforeAll, describe, expect, it } from 'vitest';
import { bareBonesPath, buildSampleApp, FlashSaleCli } from './flash-sale-cli.js';
import { runSale, SOLD_OUT } from './sale-on-store.js';

const RUN_TIMEOUT_MS = 240_000;

beforeAll(buildSampleApp, RUN_TIMEOUT_MS);

describe('npm start -- --store', () => {
  it('zookeeper says in one line what to do without Java', async () => {
    using bare = bareBonesPath();
    const cli = new FlashSaleCli(['--store', 'zookeeper'], { PATH: bare.path });
    expect(await cli.exitCode()).toBe(2);
    expect(cli.stderr).toMatch(
      /^There is no ZooKeeper: set ZOOKEEPER_CONNECT .*, or install Java and Maven .*\n$/,
    );
  });

  it(
    'memory sells with one instance, and says that it causes no faults',
    async () => {
      using bare = bareBonesPath();
      const { locks, reports } = await runSale(['--store', 'memory', '--strategies', 'locked'], {
        PATH: bare.path,
      });
      expect(locks).toContain('one instance sells, without faults');
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 0, stopped: 0 } });
    },
    RUN_TIMEOUT_MS,
  );

  it.each([
    [
      'a store that it does not have',
      'oracle',
      {},
      'There is no store "oracle". Choose from redis, mysql, postgres, zookeeper, memory.',
    ],
    [
      'a PostgreSQL that is not there',
      'redis',
      { DATABASE_URL: 'postgres://app:secret@127.0.0.1:1/app' },
      'PostgreSQL cannot be used (the one of DATABASE_URL at 127.0.0.1:1): connect ECONNREFUSED',
    ],
    [
      'a Redis that is not there',
      'redis',
      { REDIS_URL: 'redis://app:secret@127.0.0.1:1' },
      'Redis cannot be used (the one of REDIS_URL at 127.0.0.1:1): connect ECONNREFUSED',
    ],
    [
      'an address that is none',
      'mysql',
      { MYSQL_URL: 'secret' },
      'MYSQL_URL must be an address such as mysql://',
    ],
    [
      'a server that is not there',
      'mysql',
      { MYSQL_URL: 'mysql://app:secret@127.0.0.1:1/app' },
      'MySQL cannot be used (the one of MYSQL_URL at 127.0.0.1:1): ',
    ],
    [
      'a connect string with a password',
      'zookeeper',
      { ZOOKEEPER_CONNECT: 'zookeeper://app:secret@127.0.0.1:1' },
      'ZOOKEEPER_CONNECT must be an address such as zk1:2181,zk2:2181,zk3:2181.',
    ],
    [
      'ZooKeeper servers that are not there',
      'zookeeper',
      { ZOOKEEPER_CONNECT: '127.0.0.1:1' },
      'ZooKeeper cannot be used (the one of ZOOKEEPER_CONNECT at 127.0.0.1:1): ',
    ],
  ])(
    'refuses %s, in words',
    async (_what, store, env, message) => {
      const cli = new FlashSaleCli(['--store', store], env);
      expect(await cli.exitCode()).toBe(2);
      expect(cli.stderr).toContain(message);
      expect(cli.stdout + cli.stderr).not.toMatch(/secret|\n +at /);
    },
    RUN_TIMEOUT_MS,
  );
});
