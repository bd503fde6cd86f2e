// Installs the packages of a folder if the installed ones differ from its package-lock.json. The root has the development
// dependencies; the benchmark and the site have lockfiles of their own.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm, root } from './process.mjs';

const packagesIn = (file) => {
  try {
    return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read: ${error.message}`, { cause: error });
  }
};

const suits = (list, value) =>
  !list ||
  ((list.includes(value) || list.every((entry) => entry.startsWith('!'))) && !list.includes(`!${value}`));
const runsHere = ({ os, cpu }) => suits(os, process.platform) && suits(cpu, process.arch);

/**
 * Returns why an install is needed; undefined when it is not. npm writes the hidden lockfile at the end of an install.
 * So it is missing after an interrupted install, and differs after one for another branch or machine.
 */
const whyInstall = (folder) => {
  const wanted = packagesIn(join(folder, 'package-lock.json'));
  if (!wanted) throw new Error(`${join(folder, 'package-lock.json')} is missing`);
  const installed = packagesIn(join(folder, 'node_modules/.package-lock.json'));
  if (!installed) return 'node_modules is missing or was left unfinished';
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '' || entry.link) continue;
    const there = installed[path];
    if (!there) {
      if (entry.optional) continue;
      return `${path} is not installed`;
    }
    if (there.version !== entry.version || there.integrity !== entry.integrity)
      return `${path} differs from package-lock.json`;
  }
  for (const [path, entry] of Object.entries(installed)) {
    if (!wanted[path]) return `${path} is no longer in package-lock.json`;
    if (!runsHere(entry)) return `${path} was installed for another platform`;
  }
  return undefined;
};

/** @param folder from the root of the repository. */
export const installDependencies = (folder = '.') => {
  const reason = whyInstall(folder);
  if (!reason) return;
  console.log(`set-up: installing dependencies with npm ci in ${folder} (${reason})`);
  // No dependency needs its install scripts. The flag is not in .npmrc, where it would also keep `npm pack` from
  // building.
  npm('ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
  // npm 10 can stop at a network error and still exit with 0.
  const missing = whyInstall(folder);
  if (missing)
    throw new Error(`npm ci did not finish (${missing}): can this machine reach its npm registry?`);
};
