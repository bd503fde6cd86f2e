import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { appNameOf } from '../../../lib/core/holders/this-process.js';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-name-'))));
afterEach(() => rm(folder, { recursive: true, force: true }));

it('an app has the name of the nearest package.json that has one', async () => {
  const dist = join(folder, 'dist');
  await mkdir(dist);
  await writeFile(join(folder, 'package.json'), '{ "name": "my-shop" }');
  await writeFile(join(dist, 'package.json'), '{ "type": "module" }');
  expect(await appNameOf(join(dist, 'main.js'))).toBe('my-shop');
  await writeFile(join(dist, 'package.json'), '{ "name": "nearer" }');
  expect(await appNameOf(join(dist, 'main.js'))).toBe('nearer');
});
