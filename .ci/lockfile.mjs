// package-lock.json must hold no download addresses: they tie everybody to the registry of whoever wrote it last.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './process.mjs';

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const entries = Object.entries(packages);
const addressed = entries.filter(([, entry]) => entry.resolved !== undefined && !entry.link);
const unverified = entries.filter(([path, entry]) => path !== '' && !entry.link && !entry.integrity);

const list = (rows) => rows.map(([path]) => `  ${path}`).join('\n');
if (addressed.length > 0) {
  console.error(
    `package-lock.json has "resolved" addresses; write it again with npm install, which .npmrc tells to leave them out:\n${list(addressed)}`,
  );
}
if (unverified.length > 0)
  console.error(`package-lock.json has entries without "integrity":\n${list(unverified)}`);
process.exitCode = addressed.length + unverified.length > 0 ? 1 : 0;
if (process.exitCode === 0)
  console.log(`package-lock.json: ${entries.length - 1} packages, no addresses, all with integrity`);
