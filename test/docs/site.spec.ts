import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { complaintsOf, launchChromium } from '../support/chromium.js';
import { listenOnFreePort, LOOPBACK } from '../support/loopback.js';
import { links, readFromRoot, tableRows } from '../support/markdown.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SITE = join(ROOT, 'docs/.site/dist');
/** Installing the tools, too. */
const BUILD_TIMEOUT_MS = 900_000;
const TIMEOUT_MS = 300_000;

const { name, homepage } = JSON.parse(readFromRoot('package.json')) as Record<'name' | 'homepage', string>;
/** GitHub Pages has the site below the name of the project. */
const BASE = `/${name}/`;
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};

/** The file of a path on the site, as GitHub Pages finds it; undefined when there is none. */
const fileOf = (path: string): string | undefined => {
  if (!path.startsWith(BASE)) return undefined;
  const file = join(SITE, decodeURI(path.slice(BASE.length)), path.endsWith('/') ? 'index.html' : '');
  return existsSync(file) ? file : undefined;
};

describe('the site', () => {
  const notFound: string[] = [];
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url!, 'http://site');
    const file = fileOf(pathname);
    if (!file) notFound.push(pathname);
    response.writeHead(file ? 200 : 404, {
      'content-type': TYPES[extname(file ?? '')] ?? 'application/octet-stream',
    });
    response.end(file && readFileSync(file));
  });
  let browser: Browser;
  let start: string;

  beforeAll(async () => {
    await promisify(execFile)(process.execPath, [join(ROOT, '.ci/docs.mjs')]);
    start = `http://${LOOPBACK}:${await listenOnFreePort(server)}${BASE}`;
    browser = await launchChromium();
  }, BUILD_TIMEOUT_MS);
  afterAll(async () => {
    await browser?.close();
    server.close();
  });

  const open = async (options?: Parameters<Browser['newPage']>[0]) => {
    const page = await browser.newPage(options);
    const complaints = complaintsOf(page);
    await page.goto(start);
    // The theme runs when it has found the keys of the computer.
    await page.locator('.DocSearch-Button').waitFor();
    return { page, complaints };
  };
  /** The pages that elements link to, from the start page. */
  const linked = async (page: Page, selector: string): Promise<string[]> => {
    const all = await page.locator(selector).all();
    const hrefs = await Promise.all(all.map((link) => link.getAttribute('href')));
    return hrefs.map((href) => href!.replace(BASE, ''));
  };

  it.each([
    ['fencing', 'docs/guide/fencing.html#fencing'],
    ['LOCK_STORE_FAILED', 'docs/operations/troubleshooting.html#lock_store_failed-http-503'],
    ['jobs run twice', 'docs/operations/troubleshooting.html#a-job-runs-twice'],
  ])(
    'finds the page about "%s" with the first three hits of its search',
    async (words, target) => {
      const { page, complaints } = await open();
      await page.keyboard.press('Control+k');
      await page.locator('#localsearch-input').fill(words);
      const hits = '.VPLocalSearchBox a.result';
      await page.locator(hits).first().waitFor();
      expect((await linked(page, hits)).slice(0, 3)).toContain(target);
      expect(complaints).toEqual([]);
      await page.close();
    },
    TIMEOUT_MS,
  );

  it(
    'opens each page of its menu, with its pictures, and no page complains',
    async () => {
      const { page, complaints } = await open();
      const pages = await linked(page, '.VPSidebar a');
      const index = tableRows(readFromRoot('docs/README.md'));
      expect(
        pages.slice(0, index.length).map((path) => path.replace(/(index)?\.html$|(?<=\/)$/, '')),
      ).toEqual(
        index.map(([link]) =>
          links(link!)[0]!
            .replace(/^(.*\/docs\/)?/, 'docs/')
            .replace(/(README)?\.md$/, ''),
        ),
      );
      for (const path of pages) {
        await page.goto(`${start}${path}`);
        expect.soft(await page.locator('h1').count(), path).toBe(1);
        const broken = await page
          .locator('img')
          .evaluateAll((images) =>
            (images as unknown as { complete: boolean; naturalWidth: number; src: string }[])
              .filter(({ complete, naturalWidth }) => complete && naturalWidth === 0)
              .map(({ src }) => src),
          );
        expect.soft(broken, path).toEqual([]);
        expect.soft(complaints.splice(0), path).toEqual([]);
      }
      expect(notFound).toEqual([]);
      await page.close();
    },
    TIMEOUT_MS,
  );

  it.each(['light', 'dark'] as const)(
    'shows its start page and its picture in %s colours',
    async (colorScheme) => {
      const { page, complaints } = await open({ colorScheme });
      expect(await page.locator('html.dark').count()).toBe(colorScheme === 'dark' ? 1 : 0);
      const picture = page.locator('picture img');
      await picture.evaluate((image) => (image as unknown as { decode(): Promise<void> }).decode());
      expect(
        await picture.evaluate((image) => (image as unknown as { currentSrc: string }).currentSrc),
      ).toContain(`flash-sale-${colorScheme}`);
      expect(complaints).toEqual([]);
      await page.close();
    },
  );

  it('has a heading for each link that names one, and a file for each link', () => {
    const pages = readdirSync(SITE, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.html'),
    );
    const htmlOf = (path: string): string => readFileSync(path, 'utf8');
    const ids = new Map(
      pages.map((path) => [
        join(SITE, path),
        new Set([...htmlOf(join(SITE, path)).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!)),
      ]),
    );
    let followed = 0;
    for (const path of pages) {
      const hrefs = [...htmlOf(join(SITE, path)).matchAll(/<a [^>]*?href="([^"]+)"/g)].map(
        ([, href]) => href!,
      );
      const dead = hrefs.filter((href) => {
        const url = new URL(href, `http://site${BASE}${path}`);
        if (url.host !== 'site') return false;
        followed += 1;
        const file = fileOf(url.pathname);
        return !file || (url.hash !== '' && !ids.get(file)?.has(decodeURIComponent(url.hash.slice(1))));
      });
      expect.soft(dead, path).toEqual([]);
    }
    expect(followed).toBeGreaterThan(pages.length);
  });

  it('has llms.txt, whose links lead to pages as Markdown', () => {
    const targets = links(readFileSync(join(SITE, 'llms.txt'), 'utf8'));
    expect(targets).toContain(`${BASE}docs/guide/builds.md`);
    expect(targets.filter((target) => !fileOf(target.split('#')[0]!))).toEqual([]);
  });

  it('sends links to other files to the repository', () => {
    const html = readFileSync(join(SITE, 'index.html'), 'utf8');
    expect(html).toContain(`href="${homepage}/blob/main/CHANGELOG.md"`);
    expect(html).toContain(`href="${BASE}docs/guide/installation.html#trying-it"`);
  });
});
