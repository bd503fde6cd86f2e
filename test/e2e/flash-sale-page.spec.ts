import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Board } from '../../sample-app/src/demo/live/board.js';
import { clock } from '../../sample-app/src/demo/live/ids.js';
import { PageServer } from '../../sample-app/src/demo/page/page-server.js';
import { until } from '../support/async.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { complaintsOf, launchChromium } from '../support/chromium.js';
import { FakePart } from './fake-part.js';
import { buildSampleApp, FlashSaleCli, fromRoot } from './flash-sale-cli.js';

const ITEMS = 30;
const LEASE_MS = 2_000;
/** How late a browser on a busy machine may notice something, in ms. */
const LATE_MS = 1_500;
const START_TIMEOUT_MS = 90_000;
const TIMEOUT_MS = 60_000;

let browser: Browser;

beforeAll(async () => {
  buildSampleApp();
  browser = await launchChromium();
}, 240_000);
afterAll(() => browser?.close());

/** The numbers and names that the page shows, as its `data-*` attributes have them. */
const on = (page: Page) => {
  const attribute = async (locator: Locator, name: string) =>
    (await locator.getAttribute(`data-${name}`)) ?? '';
  const body = page.locator('body');
  const lock = page.locator('#lock');
  return {
    connection: () => attribute(body, 'connection'),
    updates: async () => Number(await attribute(body, 'updates')),
    holder: () => attribute(lock, 'holder'),
    token: async () => Number(await attribute(lock, 'token')),
    lane: (name: string) => page.locator(`#lanes [data-lane="${name.split(' ')[1]}"]`),
    sale: async (strategy: string) => {
      const sale = page.locator(`#stock [data-strategy="${strategy}"]`);
      if ((await sale.count()) === 0) return { sold: 0, left: 0, refused: 0, state: 'none' };
      const number = async (name: string) => Number(await attribute(sale, name));
      const [sold, left, refused] = await Promise.all([number('sold'), number('left'), number('refused')]);
      return { sold, left, refused, state: await attribute(sale, 'state') };
    },
    press: (name: string) => page.getByRole('button', { name }).click(),
  };
};

const open = async (url: string, options: Parameters<Browser['newPage']>[0] = {}) => {
  const page = await browser.newPage(options);
  const complaints = complaintsOf(page);
  await page.goto(url);
  return { page, complaints, shown: on(page) };
};

describe('the page of npm start -- --serve', () => {
  let redis: RedisServer;
  let cli: FlashSaleCli;
  let url: string;
  let first: Awaited<ReturnType<typeof open>>;

  beforeAll(async () => {
    redis = await RedisServer.start();
    cli = new FlashSaleCli(['--serve', '--items', String(ITEMS), '--charge-ms', '200'], {
      REDIS_URL: redis.url,
    });
    url = await until(() => /^Watch it on (\S+)$/m.exec(cli.stdout)?.[1], {
      what: cli.stderr,
      timeoutMs: START_TIMEOUT_MS,
    });
    first = await open(url);
    await until(() => cli.stdout.includes('Ctrl-C') || !cli.running, { timeoutMs: START_TIMEOUT_MS });
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    cli.interrupt();
    await cli.exitCode();
    await redis.stop();
  });

  it(
    'shows a sale that is opened with the keyboard, and the holder of the lock',
    async () => {
      const { page, shown } = first;
      await page.getByLabel('Strategy').selectOption('locked');
      await page.getByRole('button', { name: 'Open a sale' }).focus();
      await page.keyboard.press('Enter');
      const { left } = await until(
        async () => {
          const sale = await shown.sale('locked');
          return sale.sold >= 3 && sale;
        },
        { what: 'three are sold', timeoutMs: TIMEOUT_MS },
      );
      expect(left).toBeLessThanOrEqual(ITEMS - 3);
      const token = await until(() => shown.token());
      const holder = await until(() => shown.holder());
      await until(async () => (await shown.token()) > token && (await shown.holder()) !== holder, {
        what: 'another instance has the lock, with a higher token',
      });
    },
    TIMEOUT_MS,
  );

  it(
    'shows that a stopped holder loses the lock with its lease, and that its late write is refused',
    async () => {
      const { page, shown } = first;
      await shown.press('Stop the holder');
      const stopped = page.locator('#lanes [data-state="stopped"]');
      await stopped.waitFor();
      const stoppedAt = performance.now();
      const name = await shown.holder();
      expect(await shown.lane(name).getAttribute('data-state')).toBe('stopped');
      await until(async () => ![name, ''].includes(await shown.holder()), {
        what: 'another instance has the lock',
      });
      expect(performance.now() - stoppedAt).toBeLessThan(LEASE_MS + LATE_MS);
      expect(await shown.lane(name).getAttribute('data-refused')).toBe('0');

      await shown.press('Let it go on');
      await until(async () => (await shown.lane(name).getAttribute('data-refused')) === '1', {
        what: 'a cross where the write was refused',
      });
      await until(async () => (await shown.sale('locked')).refused === 1, {
        what: 'the number of such writes',
      });
    },
    TIMEOUT_MS,
  );

  it(
    'shows that the lock of a killed holder stays until its lease ends, and that the instance comes back',
    async () => {
      const { page, shown } = first;
      await shown.press('Kill the holder');
      await page.locator('#lanes [data-state="killed"]').waitFor();
      const name = await shown.holder();
      expect(await shown.lane(name).getAttribute('data-state')).toBe('killed');
      for (const button of ['Stop the holder', 'Kill the holder'])
        expect(await page.getByRole('button', { name: button }).isDisabled()).toBe(true);
      expect(await page.locator('#spoken').textContent()).toContain('was killed while it held the lock');
      await until(async () => ![name, ''].includes(await shown.holder()), {
        what: 'another instance has the lock',
      });
      await until(
        async () => ['waits', 'holds', 'idle'].includes((await shown.lane(name).getAttribute('data-state'))!),
        {
          what: 'the instance is up again',
          timeoutMs: TIMEOUT_MS,
        },
      );
    },
    TIMEOUT_MS,
  );

  it(
    'shows the same in a second tab, and in both the end of the sale: all sold, none twice',
    async () => {
      const second = await open(url, { viewport: { width: 360, height: 800 }, colorScheme: 'dark' });
      for (const { shown } of [first, second])
        await until(async () => (await shown.sale('locked')).state === 'over', { timeoutMs: TIMEOUT_MS });
      const sales = await Promise.all([first, second].map(({ shown }) => shown.sale('locked')));
      expect(sales[0]).toEqual({ sold: ITEMS, left: 0, refused: 1, state: 'over' });
      expect(sales[1]).toEqual(sales[0]);
      expect(await second.page.evaluate('document.documentElement.scrollWidth')).toBe(360);
      expect(second.complaints).toEqual([]);
      await second.page.close();
    },
    TIMEOUT_MS,
  );

  it(
    'shows how the sale without a lock goes wrong',
    async () => {
      const { page, shown } = first;
      await page.getByLabel('Strategy').selectOption('none');
      await shown.press('Open a sale');
      await until(async () => (await shown.sale('none')).left < 0, {
        what: 'oversold',
        timeoutMs: TIMEOUT_MS,
      });
    },
    TIMEOUT_MS,
  );

  it(
    'tells when the demo has ended, and has complained of nothing until then',
    async () => {
      expect(first.complaints).toEqual([]);
      cli.interrupt();
      await until(async () => (await first.shown.connection()) === 'over', { timeoutMs: TIMEOUT_MS });
      expect((await first.shown.sale('locked')).sold).toBe(ITEMS);
    },
    TIMEOUT_MS,
  );
});

/** Which instance has the lock, according to each part of the page. */
const HOLDERS = `({
  card: document.querySelector('#lock').dataset.holder,
  labels: [...document.querySelectorAll('#lanes [data-holds=true]')].map(({ dataset }) => dataset.lane),
  blocks: [...document.querySelectorAll('[data-open]')].map(({ dataset }) => dataset.open).filter(Boolean),
  tail: document.querySelector('[data-tail]').dataset.tail,
})`;

interface Arrow {
  readonly from: string;
  readonly to: string;
  /** How far its ends are from the end of the one block and from the start of the other one, in pixels. */
  readonly gaps: readonly number[];
}

/** The arrows, from left to right, and the blocks that they join. All move: this is one moment. */
const ARROWS = `[...document.querySelectorAll('[data-from]')].map((arrow) => {
  const { from, to } = arrow.dataset;
  const rect = (token) => document.querySelector('[data-bar="' + token + '"] rect').getBBox();
  const [before, after] = [rect(from), rect(to)];
  const [start, end] = [arrow.getPointAtLength(0), arrow.getPointAtLength(arrow.getTotalLength())];
  const down = before.y < after.y;
  return { from, to, gaps: [
    start.x - before.x - before.width, start.y - before.y - (down ? before.height : 0),
    end.x - after.x, end.y - after.y - (down ? 0 : after.height),
  ] };
})`;

describe('the page of a server', () => {
  const folder = new URL(`file://${fromRoot('dist/sample-app/page/')}`);
  const newBoard = (items: number): Board => {
    const board = new Board(LEASE_MS, 'Redis');
    board.starting('locked', ['instance 1']);
    board.open({ strategy: 'locked', items, clicks: 1 });
    return board;
  };

  it(
    'says when the server is away, and goes on with what it then shows when it is back',
    async () => {
      const before = await PageServer.start({ board: newBoard(7), folder });
      const { pathname, port } = new URL(before.url);
      const { page, shown } = await open(before.url);
      await until(async () => (await shown.sale('locked')).left === 7);
      await before.close();
      await until(async () => (await shown.connection()) === 'lost', { what: 'the page has noticed' });
      const address = { port: Number(port), token: pathname.replaceAll('/', '') };
      await using _after = await PageServer.start({ board: newBoard(9), folder, ...address });
      await until(async () => (await shown.sale('locked')).left === 9, {
        what: 'the page shows the new board',
      });
      expect(await shown.connection()).toBe('live');
      await page.close();
    },
    TIMEOUT_MS,
  );

  it(
    'shows one state of the lock in card, label and chart, and arrows from block to block',
    async () => {
      const board = new Board(LEASE_MS, 'Redis');
      const parts = [new FakePart(), new FakePart(), new FakePart()];
      const [first, second, third] = parts as [FakePart, FakePart, FakePart];
      board.starting(
        'locked',
        parts.map((_, index) => `instance ${index + 1}`),
      );
      parts.forEach((part, index) => board.up(index, part));
      board.open({ strategy: 'locked', items: 9, clicks: 9 });
      await using server = await PageServer.start({ board, folder });
      const { page } = await open(server.url, { viewport: { width: 360, height: 800 } });
      const shows = (lane: string) =>
        vi.waitFor(async () => {
          const list = lane ? [lane] : [];
          const card = lane && `instance ${lane}`;
          expect(await page.evaluate(HOLDERS)).toEqual({ card, labels: list, blocks: list, tail: lane });
        }, TIMEOUT_MS / 4);

      const now = clock();
      first.sells(1_001, now - 3_000)(now - 2_500);
      const end = third.sells(1_002, now - 2_450);
      await shows('3');
      end(now - 2_000);
      await shows('');
      second.sells(1_003, now - 1_900);
      await shows('2');
      const lock = page.locator('#lock');
      expect(await lock.getAttribute('data-grant')).toBe('3');
      expect(await lock.getAttribute('data-token')).toBe('1003');
      board.killed(1);
      await shows('2');
      third.says({ type: 'acquired', key: 'sku:1', owner: 'c:', token: 1_004, at: clock() });
      await shows('3');
      third.says({ type: 'sold', token: 1_004 });
      await page.locator('[data-bar="1004"][data-sold="1"]').waitFor({ state: 'attached' });

      const arrows = await page.evaluate<readonly Arrow[]>(ARROWS);
      expect(arrows.map(({ from, to }) => [from, to])).toEqual([
        ['1001', '1002'],
        ['1002', '1003'],
        ['1003', '1004'],
      ]);
      for (const { gaps } of arrows) expect(Math.max(...gaps.map(Math.abs))).toBeLessThan(3);
      await page.close();
    },
    TIMEOUT_MS,
  );

  it.each([
    ['at most 60 updates in a second', 'no-preference', 60],
    ['at most two where motion is not wanted', 'reduce', 2],
  ] as const)('makes %s, however much happens', async (_what, reducedMotion, rate) => {
    const board = newBoard(7);
    await using server = await PageServer.start({ board, folder });
    const { page, shown } = await open(server.url, { reducedMotion });
    await until(async () => (await shown.updates()) > 0);
    const [before, startedAt] = [await shown.updates(), performance.now()];
    let changes = 0;
    await until(() => {
      for (let i = 0; i < 50; i += 1) board.inspected(undefined, (changes += 1));
      return performance.now() - startedAt > 1_500;
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    const updates = (await shown.updates()) - before;
    expect(updates).toBeGreaterThan(1);
    expect(updates).toBeLessThanOrEqual(Math.ceil((seconds + 0.5) * rate) + 1);
    await page.close();
  });
});
