// Checks the package as a user gets it: packs it, and lets publint and attw ("are the types wrong?") check the tarball.
//
//   node .ci/package.mjs publint|attw
//
// With PACKED_TARBALL in the environment they check the file of that name, as a release does.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { captureNpm, root, tool } from './process.mjs';

const checks = {
  publint: (tarball) => tool('publint', 'run', tarball, '--strict'),
  // The strict profile includes all others: node10, node16 from CommonJS and from ESM, and bundlers.
  attw: (tarball) => tool('attw', tarball, '--profile', 'strict', '--no-emoji', '--no-definitely-typed'),
};

const [name] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-pack-'));

const pack = () => {
  const [packed] = JSON.parse(
    captureNpm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder]),
  );
  return join(folder, packed.filename);
};

try {
  const check = Object.hasOwn(checks, name ?? '') ? checks[name] : undefined;
  if (!check) throw new Error(`say which check: ${Object.keys(checks).join(' or ')}`);
  check(process.env.PACKED_TARBALL ? resolve(root, process.env.PACKED_TARBALL) : pack());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
