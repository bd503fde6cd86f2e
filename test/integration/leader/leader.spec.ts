import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { MysqlServer } from '../../support/servers/mysql-server.js';
import { PostgresServer } from '../../support/servers/postgres-server.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { ZooKeeperServer } from '../../support/servers/zookeeper-server.js';
import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestWorker } from '../../support/worker.js';
import type { FromLeader, LeaderWorkerSetup, ToLeader } from './leader.worker.js';

const WORKER = new URL('./leader.worker.ts', import.meta.url);
/** Lease of the leader, and the session of ZooKeeper. */
const WATCHDOG_MS = 3_000;
/** What a busy machine may add to each take-over. */
const MARGIN_MS = 2_000;

interface Server {
  readonly host: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** One server, or the servers of a quorum. */
interface Servers {
  readonly all: readonly Server[];
  readonly address: string;
}

const named = (server: Server, address: string): Servers => ({ all: [server], address });

const PLACES: readonly { store: LeaderWorkerSetup['store']; start: () => Promise<Servers> }[] = [
  {
    store: 'redis',
    start: async () => {
      const server = await RedisServer.start();
      return named(server, server.url);
    },
  },
  {
    store: 'quorum',
    start: async () => {
      const all = await RedisServer.startAll([{}, {}, {}]);
      return { all, address: all.map(({ url }) => url).join(' ') };
    },
  },
  {
    store: 'postgres',
    start: async () => {
      const server = await PostgresServer.start();
      const store = new PostgresStore({ connectionString: server.uri });
      await store.migrate();
      await store.close();
      return named(server, server.uri);
    },
  },
  {
    store: 'mysql',
    start: async () => {
      const server = await MysqlServer.start();
      await server.migrate();
      return named(server, server.uri);
    },
  },
  {
    store: 'zookeeper',
    start: async () => {
      const server = await ZooKeeperServer.start();
      return named(server, server.address);
    },
  },
];

type Worker = TestWorker<ToLeader, FromLeader>;

/** Time in ms on the clock of the workers. */
const sharedNow = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** A time in which a process certainly believed to lead: from the end of the first look to the beginning of the last. */
interface Belief {
  readonly pid: string;
  readonly token: number;
  readonly from: number;
  until: number;
}

const beliefsIn = (folder: string): Belief[] => {
  const beliefs = new Map<string, Belief>();
  for (const name of readdirSync(folder)) {
    for (const line of readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1)) {
      const [token, before, after] = line.split(' ').map(Number) as [number, number, number];
      const known = beliefs.get(`${name} ${token}`);
      if (known) known.until = before;
      else beliefs.set(`${name} ${token}`, { pid: name, token, from: after, until: after });
    }
  }
  return [...beliefs.values()].sort((a, b) => a.from - b.from);
};

describe.each(PLACES)('three processes on $store', ({ store, start }) => {
  let servers: Servers;
  let folder: string;
  let key: string;
  let runs = 0;
  const workers: Worker[] = [];
  const proxies: TcpProxy[] = [];

  beforeAll(async () => {
    servers = await start();
    return () => Promise.all(servers.all.map((server) => server.stop()));
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leader-'));
    key = `leader_${(runs += 1)}`;
  });
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker[Symbol.asyncDispose]()));
    for (const proxy of proxies.splice(0)) proxy.close();
    rmSync(folder, { recursive: true });
  });

  /** Starts candidates, which come in this order. The first one reaches the server through its own address. */
  const candidates = async (firstAddress = servers.address): Promise<readonly [Worker, Worker, Worker]> => {
    const ready = async (address: string): Promise<Worker> => {
      const setup: LeaderWorkerSetup = { store, address, key, watchdogMs: WATCHDOG_MS, folder };
      const worker = TestWorker.start<ToLeader, FromLeader>(WORKER, { args: [JSON.stringify(setup)] });
      workers.push(worker);
      await worker.next('contends');
      return worker;
    };
    const first = await ready(firstAddress);
    await first.next('leads');
    const [second, third] = await Promise.all([ready(servers.address), ready(servers.address)]);
    return [first, second, third];
  };

  /** Waits until one of the processes leads and has noted that. Resolves with it, and the time since `from`. */
  const nextLeader = async (among: readonly Worker[], from: number, atMostMs: number) => {
    const counts = among.map((worker) => worker.all('leads').length);
    const leader = await until(() => among.find((worker, i) => worker.all('leads').length > counts[i]!), {
      timeoutMs: atMostMs + MARGIN_MS,
      what: `another process leads after ${atMostMs} ms at most`,
    });
    const { at, token } = leader.all('leads').at(-1)!;
    const tookMs = at - from;
    expect(tookMs).toBeLessThan(atMostMs + MARGIN_MS);
    // A process that is stopped before it looks has noted nothing, and never will.
    await until(() => beliefsIn(folder).some((belief) => belief.token === token), {
      what: 'the leader has noted that',
    });
    return { leader, tookMs };
  };

  /** Expects that no two processes ever believed to lead at once, and that each leader had a greater token. */
  const expectOneAfterTheOther = (leaders: number): void => {
    const beliefs = beliefsIn(folder);
    expect(beliefs.length).toBe(leaders);
    beliefs.slice(1).forEach((next, i) => {
      const before = beliefs[i]!;
      expect(next.token, JSON.stringify(beliefs)).toBeGreaterThan(before.token);
      expect(next.from, JSON.stringify(beliefs)).toBeGreaterThan(before.until);
    });
  };

  const report = (took: Readonly<Record<string, number>>): void => {
    if (process.env['TAKE_OVER'] === undefined) return;
    const times = Object.entries(took).map(([what, ms]) => `${what} ${ms.toFixed(1)} ms`);
    process.stdout.write(`TAKE-OVER ${store}: ${times.join(', ')}\n`);
  };

  it(
    'have one leader at a time: through SIGTERM, kill -9 and SIGSTOP past the lease',
    { timeout: 60_000 },
    async () => {
      const all = await candidates();
      const [first] = all;
      // SIGTERM: the leader hands over as soon as its function has ended.
      let others = all.filter((worker) => worker !== first);
      let from = sharedNow();
      const terminated = first.kill('SIGTERM');
      const second = await nextLeader(others, from, 0);
      await terminated;
      expect(first.all('leads no longer')).toMatchObject([{ reason: 'shutdown' }]);
      // SIGSTOP: its lock expires, and when it runs again it does not believe to lead.
      others = others.filter((worker) => worker !== second.leader);
      from = sharedNow();
      await second.leader.kill('SIGSTOP');
      const third = await nextLeader(others, from, WATCHDOG_MS);
      await second.leader.kill('SIGCONT');
      expect(await second.leader.next('leads no longer')).toMatchObject({
        reason: expect.stringMatching(/^(expired|refused)$/) as string,
      });
      // kill -9: the process that was stopped contends again, by itself.
      from = sharedNow();
      await third.leader.kill('SIGKILL');
      const fourth = await nextLeader([second.leader], from, WATCHDOG_MS);
      expect(fourth.leader).toBe(second.leader);
      report({ SIGTERM: second.tookMs, SIGSTOP: third.tookMs, 'kill -9': fourth.tookMs });
      expectOneAfterTheOther(4);
    },
  );

  it('have another leader when the link of the leader is cut, which contends again later', async () => {
    let address = servers.address;
    for (const server of servers.all) {
      const proxy = await TcpProxy.start(server);
      proxies.push(proxy);
      address = address.replace(`${server.host}:${server.port}`, `${proxy.host}:${proxy.port}`);
    }
    const [first, ...others] = await candidates(address);
    const from = sharedNow();
    for (const proxy of proxies) proxy.blackhole();
    const { leader, tookMs } = await nextLeader(others, from, WATCHDOG_MS);
    await first.next('leads no longer');
    for (const proxy of proxies) {
      await proxy.restore();
      proxy.cut();
    }
    const [last] = others.filter((worker) => worker !== leader);
    leader.send({ type: 'stop' });
    await nextLeader([last!], sharedNow(), 0);
    last!.send({ type: 'stop' });
    // It waits for 1 to 2 s between two attempts while the store is away.
    await nextLeader([first], sharedNow(), 3_000);
    report({ 'cut link': tookMs });
    expectOneAfterTheOther(4);
  });
});
