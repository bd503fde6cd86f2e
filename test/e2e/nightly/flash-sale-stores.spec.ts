import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { onPath } from '../../../.ci/process.mjs';
import { until } from '../../support/async.js';
import { MysqlServer } from '../../support/servers/mysql-server.js';
import { accepts } from '../../support/loopback.js';
import { ZooKeeperServer } from '../../support/servers/zookeeper-server.js';
import { buildSampleApp, FlashSaleCli, temporaryFolder } from '../flash-sale-cli.js';
import { runSale, SOLD_OUT } from '../sale-on-store.js';

const RUN_TIMEOUT_MS = 240_000;

/** Resolves with the number of nodes of a server. */
const nodesOf = async (server: ZooKeeperServer): Promise<number> =>
  Number(/^Node count: (\d+)/m.exec(await server.command('srvr'))?.[1]);

const zookeeperFilesIn = (folder: string): string[] =>
  readdirSync(folder).filter((name) => name.includes('zookeeper'));

beforeAll(buildSampleApp, RUN_TIMEOUT_MS);

describe('npm start -- --store', () => {
  it(
    'mysql sells every item once on a mariadbd that it starts, while instances are stopped and killed',
    async () => {
      const { locks, reports } = await runSale(['--store', 'mysql', '--strategies', 'locked']);
      expect(locks).toMatch(/^MySQL: .*mariadbd, started for this run/);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 1, stopped: 1 } });
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'mysql uses the server of MYSQL_URL, without its password in the output, and leaves no table behind',
    async () => {
      await using server = await MysqlServer.start();
      const { locks, reports } = await runSale(['--store', 'mysql', '--strategies', 'manual'], {
        MYSQL_URL: server.uri,
      });
      expect(locks).toContain(`MySQL: the one of MYSQL_URL at ${server.host}:${server.port}.`);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT });
      expect(await server.admin('SHOW TABLES FROM app')).toEqual([]);
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'postgres sells every item once in an embedded PostgreSQL, while instances are stopped and killed',
    async () => {
      const { locks, reports } = await runSale(['--store', 'postgres', '--strategies', 'locked']);
      expect(locks).toMatch(/^PostgreSQL: the embedded PostgreSQL at 127/);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 1, stopped: 1 } });
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'zookeeper sells every item once on a server that it starts, while instances are stopped and killed',
    async () => {
      using folder = temporaryFolder();
      const { locks, reports } = await runSale(['--store', 'zookeeper', '--strategies', 'locked'], {
        TMPDIR: folder.path,
      });
      expect(locks).toContain(`ZooKeeper: one server, started for this run with ${onPath('java')}, at 127.`);
      expect(locks).toContain('It has no permits: ');
      expect(reports[0]).toMatchObject({
        facts: { ...SOLD_OUT, staleWritesRefused: 1 },
        faults: { killed: 1, stopped: 1 },
      });
      expect(zookeeperFilesIn(folder.path)).toEqual([]);
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'zookeeper uses the servers of ZOOKEEPER_CONNECT, whose containers of the run are removed',
    async () => {
      // Ticks of production: it grants no session of two seconds.
      const ticks = { tickTimeMs: 2_000, minSessionTimeoutMs: 4_000 };
      await using server = await ZooKeeperServer.start({ ...ticks, containerCheckMs: 100 });
      const before = await nodesOf(server);
      const { locks, reports } = await runSale(['--store', 'zookeeper', '--strategies', 'locked'], {
        ZOOKEEPER_CONNECT: server.address,
      });
      expect(locks).toContain(`ZooKeeper: the one of ZOOKEEPER_CONNECT at ${server.address}.`);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 1, stopped: 1 } });
      await until(async () => (await nodesOf(server)) === before, {
        what: 'the nodes of the run are removed',
      });
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'zookeeper ends its server and removes its files after Ctrl-C',
    async () => {
      using folder = temporaryFolder();
      const cli = new FlashSaleCli(['--store', 'zookeeper', '--serve'], { TMPDIR: folder.path });
      await until(() => cli.stdout.includes('Ctrl-C ends it') || !cli.running, { timeoutMs: RUN_TIMEOUT_MS });
      const port = Number(/java, at\s+127\.0\.0\.1:(\d+)/.exec(cli.stdout)?.[1]);
      expect(port, cli.stderr).toBeGreaterThan(0);
      await accepts(port);
      cli.interrupt();
      expect(await cli.exitCode(), cli.stderr).toBe(0);
      await expect(accepts(port)).rejects.toThrow('ECONNREFUSED');
      expect(zookeeperFilesIn(folder.path)).toEqual([]);
    },
    RUN_TIMEOUT_MS,
  );
});
