// Builds the site of docs/, with the reference of the API from the docstrings. The tools have a lockfile of their own in docs/.site.
// The site refuses dead links.
//
//   node .ci/docs.mjs           builds docs/.site/dist
//   node .ci/docs.mjs --dev     serves it, and shows changes of docs/ at once
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installDependencies } from './dependencies.mjs';
import { exclusively } from './exclusive.mjs';
import { root, run } from './process.mjs';

const SITE = 'docs/.site';

const tool = (name, ...args) =>
  run(join(root, SITE, 'node_modules', '.bin', name), args, { cwd: join(root, SITE), name });

try {
  const { values } = parseArgs({ options: { dev: { type: 'boolean' } } });
  await exclusively(() => installDependencies(SITE));
  tool('typedoc', '--options', 'typedoc.config.mjs');
  if (values.dev) tool('vitepress', 'dev');
  else {
    tool('vitepress', 'build');
    const files = readdirSync(join(root, SITE, 'dist'), { recursive: true });
    const bytes = files.reduce((sum, file) => sum + statSync(join(root, SITE, 'dist', file)).size, 0);
    const pages = files.filter((file) => file.endsWith('.html')).length;
    console.log(`docs: ${pages} pages, ${(bytes / 1e6).toFixed(1)} MB, in ${SITE}/dist`);
  }
} catch (error) {
  console.error(`docs: ${error.message}`);
  process.exitCode = 1;
}
