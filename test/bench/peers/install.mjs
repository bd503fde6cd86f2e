// Installs the peers that the benchmark compares with, when what is installed is not what their lockfile asks for.
// They are no dependencies of this repository: only `npm run bench` needs them.
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exclusively } from '../../../.ci/exclusive.mjs';
import { npm, root } from '../../../.ci/process.mjs';

const folder = dirname(fileURLToPath(import.meta.url));

const packagesIn = (file) => {
  try {
    return JSON.parse(readFileSync(join(folder, file), 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw error;
  }
};

// npm writes the hidden lockfile as the last step of an install: an interrupted install has none.
const whatIsMissing = () => {
  const installed = packagesIn('node_modules/.package-lock.json');
  return Object.entries(packagesIn('package-lock.json'))
    .filter(([path, { optional }]) => path !== '' && !optional)
    .find(([path, { integrity }]) => installed[path]?.integrity !== integrity)?.[0];
};

try {
  await exclusively(() => {
    if (whatIsMissing() === undefined) return;
    console.log(`set-up: installing the peers of the benchmark (${relative(root, folder)})`);
    npm('ci', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error');
    const missing = whatIsMissing();
    if (missing !== undefined) throw new Error(`npm ci did not install ${missing}`);
  });
} catch (error) {
  console.error(`set-up of the benchmark: ${error.message}`);
  process.exitCode = 1;
}
