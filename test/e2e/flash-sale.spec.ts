import { PassThrough } from 'node:stream';
import { WriteStream } from 'node:tty';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { paintFor } from '../../sample-app/src/demo/paint.js';
import { reportTable } from '../../sample-app/src/demo/report.js';
import type { SaleReport } from '../../sample-app/src/demo/run-sale.js';
import type { StrategyName } from '../../sample-app/src/flash-sale/strategies/strategy-names.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { bareBonesPath, buildSampleApp, FlashSaleCli } from './flash-sale-cli.js';

const BUYERS = 150;
const ITEMS = 20;
const RUN_TIMEOUT_MS = 240_000;

interface Result {
  readonly ok: boolean;
  readonly locks: string;
  readonly database: string;
  readonly reports: readonly SaleReport[];
}

const run = async (args: readonly string[], env?: Record<string, string>) => {
  const cli = new FlashSaleCli(
    [...args, '--buyers', String(BUYERS), '--items', String(ITEMS), '--json'],
    env,
  );
  const code = await cli.exitCode();
  // When there is no result, stderr says why.
  expect(cli.stdout, cli.stderr).not.toBe('');
  return { code, stderr: cli.stderr, result: JSON.parse(cli.stdout) as Result };
};

const tooWide = (text: string): string[] => text.split('\n').filter((line) => line.length > 80);

beforeAll(buildSampleApp, RUN_TIMEOUT_MS);

describe('npm start -- --help', () => {
  it('fits into 80 columns', async () => {
    const cli = new FlashSaleCli(['--help']);
    expect(await cli.exitCode()).toBe(0);
    expect(tooWide(cli.stdout)).toEqual([]);
  });
});

describe('npm start', () => {
  it(
    'says in two sentences what came of the sale without a lock and with @Locked, before its table',
    async () => {
      await using server = await RedisServer.start();
      const cli = new FlashSaleCli([], { REDIS_URL: server.url });
      expect(await cli.exitCode(), cli.stderr + cli.stdout).toBe(0);
      const [story = '', ...rest] = cli.stdout.slice(cli.stdout.indexOf('Without a lock')).split('──');
      expect(story.replaceAll(/\s+/g, ' ')).toMatch(
        /^Without a lock 3 instances sold \d+ of 5 items and charged \d+ customers .* sold 5 of 5 and charged no customer twice, though 1 instance was killed and 1 stopped/,
      );
      expect(rest.join('')).toMatch(/^none +\d+ .*\nlocked +5 +0 /m);
      expect(cli.stdout).toContain('npm start -- --all');
      expect(tooWide(cli.stdout)).toEqual([]);
    },
    RUN_TIMEOUT_MS,
  );
});

describe('a flash sale on three instances, with a Redis given by REDIS_URL', () => {
  let server: RedisServer;
  let code: number | null;
  let stderr: string;
  let result: Result;

  beforeAll(async () => {
    server = await RedisServer.start();
    await server.cli('SET', 'somebody:else', 'untouched');
    await server.cli('SET', 'nest_redis_lock:fence:{else}', '7');
    ({ code, stderr, result } = await run(['--all'], { REDIS_URL: server.url }));
  }, RUN_TIMEOUT_MS);

  afterAll(() => server.stop());

  const reportOf = (strategy: StrategyName): SaleReport => {
    const report = result.reports.find((candidate) => candidate.strategy === strategy);
    if (!report) throw new Error(`There is no report of ${strategy}.`);
    return report;
  };

  it('says which servers it took', () => {
    expect(result.locks).toContain('REDIS_URL');
    expect(result.locks).toContain(String(server.port));
    expect(result.database).toContain('embedded');
  });

  it('breaks every rule without a lock', () => {
    const { facts } = reportOf('none');
    expect(facts.oversold).toBeGreaterThan(0);
    expect(facts.doubleOrders).toBeGreaterThan(0);
    expect(facts.chargedTwice).toBeGreaterThan(0);
  });

  it.each(['optimistic', 'sql', 'locked', 'manual'] as const)(
    '%s sells every item once, one to a customer',
    (name) => {
      expect(reportOf(name).facts).toMatchObject({ sold: ITEMS, oversold: 0, doubleOrders: 0 });
    },
  );

  it.each(['optimistic', 'locked', 'manual'] as const)('%s charges no customer twice', (name) => {
    expect(reportOf(name).facts.chargedTwice).toBe(0);
  });

  it.each(['locked', 'manual'] as const)(
    '%s leaves no order unpaid and no payment without an order',
    (name) => {
      expect(reportOf(name).facts).toMatchObject({ unpaid: 0, chargedForNothing: 0 });
    },
  );

  it('kills one and stops another instance that holds the lock, and the fence refuses the stale write', () => {
    const { faults, facts } = reportOf('locked');
    expect(faults.killed).toBe(1);
    expect(faults.stopped).toBeGreaterThanOrEqual(1);
    expect(facts.staleWritesRefused).toBeGreaterThanOrEqual(1);
  });

  it('answers every click in the end', () => {
    expect(result.reports.map(({ strategy, gaveUp, failure }) => ({ strategy, gaveUp, failure }))).toEqual(
      result.reports.map(({ strategy }) => ({ strategy, gaveUp: 0, failure: undefined })),
    );
  });

  it('exits with 0 and without a complaint', () => {
    expect(result.reports.flatMap(({ complaints }) => complaints)).toEqual([]);
    expect(result.ok).toBe(true);
    expect(code).toBe(0);
  });

  it('prints a table with a line for every strategy', () => {
    for (const { strategy, facts } of result.reports) {
      expect(stderr).toMatch(new RegExp(`^${strategy} +${facts.sold} +${facts.oversold} `, 'm'));
    }
  });

  it('says before the first sale how long it takes, and why one locks although an UPDATE does', () => {
    const [before] = stderr.split(/^none +\d+ %/m);
    expect(before).toMatch(/It takes about \d+ (?:seconds|minutes)/);
    expect(before).toContain('Why lock, when sql is as right, and faster?');
    for (const { strategy } of result.reports)
      expect(before).toMatch(new RegExp(`^  ${strategy} .*\\(\\d+ s\\)`, 'm'));
  });

  it('shows at the end of each sale what the table counts', () => {
    const ends = [...stderr.matchAll(/^(\S+) +100 % \| .* \| (\d+) sold/gm)];
    expect(ends.map(([, strategy, sold]) => [strategy, Number(sold)])).toEqual(
      result.reports.map(({ strategy, facts }) => [strategy, facts.sold]),
    );
  });

  it('explains its columns', () => {
    for (const column of ['refused', 'stale writes refused', 'p50, p99', 'longest outage']) {
      expect(stderr).toMatch(new RegExp(`^${column}: `, 'm'));
    }
  });

  it('has colours on a terminal, and none in a pipe or with NO_COLOR', () => {
    expect(stderr).not.toContain('\u001b');
    const { getColorDepth } = WriteStream.prototype;
    const terminal = (env: NodeJS.ProcessEnv) =>
      Object.assign(new PassThrough(), { isTTY: true, getColorDepth: () => getColorDepth(env) });
    vi.stubEnv('FORCE_COLOR', undefined);
    try {
      const table = reportTable(result.reports, paintFor(terminal({ TERM: 'xterm-256color' })));
      expect(table).toContain('\u001b');
      expect(stripVTControlCharacters(table)).toBe(reportTable(result.reports));
      expect(reportTable(result.reports, paintFor(terminal({ NO_COLOR: '1' })))).toBe(
        reportTable(result.reports),
      );
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('prints nothing that is wider than a terminal of 80 columns', () => {
    expect(tooWide(stderr)).toEqual([]);
    // As wide as it gets: a crowd that is slow, and a sale that goes badly wrong.
    const facts = { sold: 9_999, oversold: 9_999, doubleOrders: 9_999, chargedTwice: 9_999 };
    const widest = result.reports.map((report) => ({
      ...report,
      facts: { ...report.facts, ...facts, staleWritesRefused: 9_999, longestOutageMs: 99_999 },
      refused: 99_999,
      p50Ms: 99_999,
      p99Ms: 99_999,
    }));
    expect(tooWide(reportTable(widest))).toEqual([]);
  });

  it('leaves foreign keys alone, none of its own behind, and no connection open', async () => {
    expect(await server.cli('KEYS', '*')).toHaveLength(2);
    expect(await server.cli('MGET', 'somebody:else', 'nest_redis_lock:fence:{else}')).toEqual([
      'untouched',
      '7',
    ]);
    // The one that asks.
    expect((await server.text('CLIENT', 'LIST')).trim().split('\n')).toHaveLength(1);
  });
});

describe('without any server to be found', () => {
  it(
    'runs the locked sale, faults and all, on an embedded Valkey and an embedded PostgreSQL',
    async () => {
      using bare = bareBonesPath();
      const { code, stderr, result } = await run(['--all', '--strategies', 'locked'], { PATH: bare.path });
      expect(result.locks).toContain('embedded Valkey');
      expect(result.database).toContain('embedded');
      expect(result.reports.flatMap(({ complaints }) => complaints)).toEqual([]);
      expect(code, stderr).toBe(0);
    },
    RUN_TIMEOUT_MS,
  );
});
