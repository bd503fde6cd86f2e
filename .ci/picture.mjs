#!/usr/bin/env node
// Takes the picture of the README, from a real run: a sale without a lock, and one with @Locked. In the second one, a holder
// is killed, and another one is stopped, up to its refused stale write. It needs Chromium: see machine.mjs.
//
//   npm run picture     writes docs/pictures/flash-sale-light.png and -dark.png
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { CHROMIUM, onPath, root } from './process.mjs';

const SCHEMES = ['light', 'dark'];
const WIDTH = 1240;
const TIMEOUT_MS = 60_000;
const POLL_MS = 20;
const ITEMS = 30;

const until = async (condition) => {
  const deadline = Date.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${TIMEOUT_MS} ms: ${condition}`);
    await sleep(POLL_MS);
  }
};

/** Resolves with the address of the page of a demo, once its instances are up. */
const serve = async (demo) => {
  let page;
  for await (const line of createInterface({ input: demo.stdout })) {
    page ??= /^Watch it on (\S+)$/.exec(line)?.[1];
    if (line.startsWith('Ctrl-C')) return page;
  }
  throw new Error('the demo ended');
};

const play = async (page) => {
  const press = (name) => page.getByRole('button', { name }).click();
  const shown = (selector) => page.locator(selector).waitFor({ timeout: TIMEOUT_MS });
  const lane = (state) => `#lanes [data-state="${state}"]`;
  const sold = (count) =>
    until(async () => {
      const sale = page.locator('#stock [data-strategy="locked"]');
      return Number(await sale.getAttribute('data-sold')) >= count;
    });
  const holder = () => page.locator('#lock').getAttribute('data-holder');
  /** Waits until another instance has the lock than the one that has it now. */
  const passedOn = async () => {
    const name = await holder();
    await until(async () => ![name, ''].includes(await holder()));
  };

  await page.getByLabel('Strategy').selectOption('none');
  await press('Open a sale');
  await shown('#stock [data-strategy="none"][data-state="over"]');
  await page.getByLabel('Strategy').selectOption('locked');
  await press('Open a sale');
  await sold(3);
  await press('Kill the holder');
  await shown(lane('killed'));
  await passedOn();
  await sold(6);
  await press('Stop the holder');
  await shown(lane('stopped'));
  await passedOn();
  await press('Let it go on');
  await shown('#lanes [data-refused="1"]');
};

const demo = spawn(
  process.execPath,
  [join(root, 'dist', 'sample-app', 'cli.js'), '--serve', '--items', String(ITEMS)],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const ended = once(demo, 'exit');
let browser;
try {
  const executablePath = onPath(...CHROMIUM);
  if (!executablePath) throw new Error('there is no Chromium on the PATH; npm run setup installs it');
  const url = await serve(demo);
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  const pages = await Promise.all(
    SCHEMES.map(async (colorScheme) => {
      const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 }, colorScheme });
      await page.goto(url);
      return page;
    }),
  );
  await play(pages[0]);
  for (const page of pages)
    await until(async () => (await page.locator('#sentence').textContent()).includes('refused the write'));
  // All that is seen without scrolling, down to the end of the lanes.
  const { y, height } = await pages[0].locator('section.lanes').boundingBox();
  const clip = { x: 0, y: 0, width: WIDTH, height: Math.ceil(y + height + 12) };
  const shots = await Promise.all(pages.map((page) => page.screenshot({ clip })));
  for (const [index, shot] of shots.entries()) {
    const path = join('docs', 'pictures', `flash-sale-${SCHEMES[index]}.png`);
    writeFileSync(join(root, path), shot);
    console.log(`picture: ${path}`);
  }
} catch (error) {
  console.error(`picture: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser?.close();
  demo.kill('SIGINT');
  await ended;
}
