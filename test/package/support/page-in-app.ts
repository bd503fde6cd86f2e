import { writeFile } from 'node:fs/promises';
import { codeBlocks, readFromRoot } from '../../support/markdown.js';
import type { ConsumerApp } from './consumer-app.js';

/** What snippets use without an import: the app of `apps/pages`, and the globals of Jest. */
const AROUND = [
  "import { expect, it } from '@jest/globals';",
  "import { PaymentClient, payments, ShopService, stock, StockRepository } from './shop.js';",
];

/**
 * Writes the snippets of a page that contain a text into the sources of an app. Each one is a file as it stands.
 *
 * @param names names of the files in the order of the snippets, without `.ts`
 */
export const writePage = async (
  app: ConsumerApp,
  path: string,
  text: string,
  names: readonly string[],
): Promise<void> => {
  const snippets = codeBlocks(readFromRoot(path), 'ts').filter((code) => code.includes(text));
  if (snippets.length !== names.length)
    throw new Error(`${path} has ${snippets.length} snippets with ${text}`);
  for (const [at, code] of snippets.entries())
    await writeFile(app.path('src', `${names[at]}.ts`), [...AROUND, code].join('\n'));
};

/** Writes the tests of the page about testing. Returns their titles. */
export const writeTestingPage = async (app: ConsumerApp): Promise<string[]> => {
  const path = 'docs/guide/testing.md';
  const titles = [...readFromRoot(path).matchAll(/^it\('([^']+)'/gm)].map(([, title]) => title!);
  await writePage(
    app,
    path,
    "\nit('",
    titles.map((_, at) => `page-${at + 1}.spec`),
  );
  return titles;
};
