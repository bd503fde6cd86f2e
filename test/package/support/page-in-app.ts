import { writeFile } from 'node:fs/promises';
import { codeBlocks, readFromRoot } from '../../support/markdown.js';
import type { ConsumerApp } from './consumer-app.js';

/** What snippets use without an import: the app of `apps/pages`, and the globals of Jest. */
const AROUND = [
  "import { expect, it } from '@jest/globals';",
  "import { PaymentClient, payments, ShopService, stock, StockRepository } from './shop.js';\n",
].join('\n');

interface Snippets {
  /** Path of the page, from the root of the repository. */
  readonly page: string;
  /** Text that is in these snippets, and in no other. */
  readonly withText: string;
  /** Names of their files, in the order of the snippets. */
  readonly files: readonly string[];
  /** What stands above each one. */
  readonly around?: string;
}

/** Writes snippets of a page into the sources of an app. Each one is a file as it stands. */
export const writeSnippets = async (
  app: ConsumerApp,
  { page, withText, files, around = '' }: Snippets,
): Promise<void> => {
  const blocks = ['ts', 'typescript'].flatMap((language) => codeBlocks(readFromRoot(page), language));
  const snippets = blocks.filter((code) => code.includes(withText));
  if (snippets.length !== files.length)
    throw new Error(`${page} has ${snippets.length} snippets with ${withText}, not ${files.length}.`);
  for (const [at, code] of snippets.entries()) await writeFile(app.path('src', files[at]!), around + code);
};

/** Writes the snippet about ConfigService. It needs `apps/pages`. */
export const writeConfigSnippet = (app: ConsumerApp): Promise<void> =>
  writeSnippets(app, {
    page: 'docs/recipes/everyday-nest.md',
    withText: '@nestjs/config',
    files: ['price-module.ts'],
    around: AROUND,
  });

/** Writes the tests of the page about testing. Returns their titles. It needs `apps/pages`. */
export const writeTestingPage = async (app: ConsumerApp): Promise<string[]> => {
  const page = 'docs/guide/testing.md';
  const titles = [...readFromRoot(page).matchAll(/^it\('([^']+)'/gm)].map(([, title]) => title!);
  const files = titles.map((_, at) => `page-${at + 1}.spec.ts`);
  await writeSnippets(app, { page, withText: "\nit('", files, around: AROUND });
  return titles;
};
