// npm run bench:pairs -- OTHER [--pairs 9] [--only NAME]: compares this build with the build in another clone, OTHER/dist.
//
// Both run in turn, in new processes for each pair, so both see the same machine. For each workload it prints two costs of a
// lock: CPU time of the client, and requests to the server. Each cost has the median of this build, of the other one, and
// of the ratios. The range leaves out the least and the greatest ratio: of nine pairs it covers the true median at 96 %.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { RedisServer } from '../../support/servers/redis-server.js';
import { TestWorker } from '../../support/worker.js';
import { commandCounts } from '../measure/redis-commands.js';
import { median, sum } from '../measure/statistics.js';
import { MYSQL } from '../workloads/sql/mysql.js';
import { POSTGRES } from '../workloads/sql/postgres.js';
import type { FromPair, StoreName, ToPair, Work } from './pair.process.js';

const TIMEOUT_MS = 120_000;
const USAGE =
  'npm run bench:pairs -- OTHER [--pairs N] [--only NAME]: OTHER is a clone in which `npm run build` has run';

/** What a run does. */
const WORKS: Readonly<Record<string, { readonly store: StoreName; readonly work: Work }>> = {
  'redis-free-1': { store: 'redis', work: { locks: 10_000, callers: 1, keys: 'own' } },
  'redis-free-100': { store: 'redis', work: { locks: 60_000, callers: 100, keys: 'own' } },
  'redis-hot': { store: 'redis', work: { locks: 60_000, callers: 100, keys: 'one' } },
  'redis-fair': { store: 'redis', work: { locks: 4_000, callers: 20, keys: 'fair' } },
  'redis-permits': { store: 'redis', work: { locks: 10_000, callers: 20, keys: 'permits' } },
  'redis-semaphore': { store: 'redis', work: { locks: 10_000, callers: 20, keys: 'semaphore' } },
  'postgres-free': { store: 'postgres', work: { locks: 10_000, callers: 100, keys: 'own' } },
  'postgres-hot': { store: 'postgres', work: { locks: 20_000, callers: 100, keys: 'one' } },
  'mysql-free': { store: 'mysql', work: { locks: 10_000, callers: 100, keys: 'own' } },
  'mysql-hot': { store: 'mysql', work: { locks: 10_000, callers: 100, keys: 'one' } },
};

interface Server extends AsyncDisposable {
  readonly url: string;
  requests(): Promise<number>;
}

const startRedis = async (): Promise<Server> => {
  const server = await RedisServer.start();
  return {
    url: server.url,
    async requests() {
      return sum([...(await commandCounts(server)).values()]);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};

const startDatabase = async ({ start }: typeof MYSQL): Promise<Server> => {
  const database = await start();
  return {
    url: database.uri,
    requests: () => database.statements(),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
};

const SERVERS: Readonly<Record<StoreName, () => Promise<Server>>> = {
  redis: startRedis,
  postgres: () => startDatabase(POSTGRES),
  mysql: () => startDatabase(MYSQL),
};

const startSide = async (folder: string, store: StoreName, url: string) => {
  const worker = TestWorker.start<ToPair, FromPair>(new URL('pair.process.ts', import.meta.url));
  worker.send({ type: 'open', dist: pathToFileURL(resolve(folder, 'dist/esm/')).href, store, url });
  await worker.next('opened', { timeoutMs: TIMEOUT_MS });
  return worker;
};

type Side = Awaited<ReturnType<typeof startSide>>;

interface Cost {
  readonly cpuUs: number;
  readonly requests: number;
}

/** Measures one run. */
const costOf = async (side: Side, server: Server, work: Work): Promise<Cost> => {
  const before = await server.requests();
  side.send({ type: 'run', work });
  const { cpuUs, violations } = await side.next('ran', { timeoutMs: TIMEOUT_MS });
  if (violations > 0) throw new Error(`${violations} times two callers were in the section at once`);
  return { cpuUs: cpuUs / work.locks, requests: ((await server.requests()) - before) / work.locks };
};

/** Measures both builds, each in a new process: what V8 makes of a program differs from one process to the next. */
const pairOf = async (
  other: string,
  store: StoreName,
  server: Server,
  work: Work,
  ownFirst: boolean,
): Promise<[own: Cost, other: Cost]> => {
  await using own = await startSide('.', store, server.url);
  await using others = await startSide(other, store, server.url);
  const [first, second] = ownFirst ? [own, others] : [others, own];
  // The first runs compile, and are left out.
  for (const side of [first, second, first, second]) await costOf(side, server, work);
  const costs = [await costOf(first, server, work), await costOf(second, server, work)] as const;
  return ownFirst ? [costs[0], costs[1]] : [costs[1], costs[0]];
};

const compared = (own: readonly number[], others: readonly number[], digits: number): string => {
  const ratios = own.map((value, i) => value / others[i]!);
  const inner = [...ratios]
    .sort((a, b) => a - b)
    .slice(ratios.length > 2 ? 1 : 0, ratios.length > 2 ? -1 : undefined);
  const [low, high] = [inner[0]!, inner.at(-1)!];
  return (
    `${median(own).toFixed(digits)} / ${median(others).toFixed(digits)} = ` +
    `${median(ratios).toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`
  );
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { pairs: { type: 'string', default: '9' }, only: { type: 'string', default: '' } },
});
const [other] = positionals;
const pairs = Number(values.pairs);
if (other === undefined || !(pairs >= 1)) {
  console.error(USAGE);
  process.exit(1);
}
for (const store of Object.keys(SERVERS) as StoreName[]) {
  const works = Object.entries(WORKS).filter(
    ([name, one]) => one.store === store && name.startsWith(values.only),
  );
  if (works.length === 0) continue;
  await using server = await SERVERS[store]();
  for (const [name, { work }] of works) {
    const costs: [Cost, Cost][] = [];
    for (let i = 0; i < pairs; i++) costs.push(await pairOf(other, store, server, work, i % 2 === 0));
    const of = (what: keyof Cost, side: 0 | 1): number[] => costs.map((pair) => pair[side][what]);
    console.log(
      `${name}: CPU µs ${compared(of('cpuUs', 0), of('cpuUs', 1), 1)}; ` +
        `requests ${compared(of('requests', 0), of('requests', 1), 2)}`,
    );
  }
}
