// Checks that lockfiles contain no download addresses, which would tie every checkout to the registry of their last
// author.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './process.mjs';

const LOCKFILES = ['package-lock.json', 'docs/.site/package-lock.json', 'test/bench/peers/package-lock.json'];

const list = (rows) => rows.map(([path]) => `  ${path}`).join('\n');

const check = (file) => {
  const { packages } = JSON.parse(readFileSync(join(root, file), 'utf8'));
  const entries = Object.entries(packages);
  const addressed = entries.filter(([, entry]) => entry.resolved !== undefined && !entry.link);
  const unverified = entries.filter(([path, entry]) => path !== '' && !entry.link && !entry.integrity);
  if (addressed.length > 0) {
    console.error(
      `${file} has "resolved" addresses; write it again with npm install, which .npmrc tells to leave them out:\n${list(addressed)}`,
    );
  }
  if (unverified.length > 0) console.error(`${file} has entries without "integrity":\n${list(unverified)}`);
  if (addressed.length + unverified.length > 0) return false;
  console.log(`${file}: ${entries.length - 1} packages, no addresses, all with integrity`);
  return true;
};

process.exitCode = LOCKFILES.map(check).every(Boolean) ? 0 : 1;
