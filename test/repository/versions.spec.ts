import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { MysqlServer } from '../support/servers/mysql-server.js';
import { repository } from '../support/package/pack.js';
import { guardFolder } from '../support/process-guard.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { SCRATCH } from '../support/scratch.js';
import { TestWorker } from '../support/worker.js';
import type { FromVersions } from './versions.process.js';

/** What a row of `npm run test:matrix` is about, by name; nothing in any other run of the tests. */
const asked = JSON.parse(process.env['TEST_VERSIONS'] ?? '{}') as Readonly<Record<string, string>>;

/** Where a package has to come from. */
const folderOf = (name: string): string => {
  const other = process.env['TEST_PACKAGES'];
  const folders = other ? [other, repository] : [repository];
  return folders.map((folder) => join(folder, 'node_modules', name)).find((folder) => existsSync(folder))!;
};

const startWorker = (env: Record<string, string> = {}) =>
  TestWorker.start<never, FromVersions>(new URL('./versions.process.ts', import.meta.url), { env });

describe('the tests run on the versions that were asked for:', () => {
  it('of Node', () => {
    expect(process.versions.node).toBe(asked['node'] ?? process.versions.node);
  });

  it.each([
    ['ioredis', 'built/index.js', { Redis }],
    ['@nestjs/core', 'index.js', { NestFactory }],
  ])('of %s', async (name, main, loaded) => {
    const folder = folderOf(name);
    expect(await import(pathToFileURL(join(folder, main)).href)).toMatchObject(loaded);
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(version).toBe(asked[name] ?? version);
  });

  it('of both in a process that a test starts', async () => {
    await using worker = startWorker();
    const { node, ioredis } = await worker.next('versions');
    expect(node).toBe(process.versions.node);
    expect(ioredis).toBe(pathToFileURL(join(folderOf('ioredis'), 'built', 'index.js')).href);
  });

  it('of packages from elsewhere in such a process', async () => {
    const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-packages-'));
    guardFolder(folder);
    const other = join(folder, 'node_modules', 'ioredis');
    await mkdir(other, { recursive: true });
    await writeFile(join(folder, 'package.json'), JSON.stringify({ dependencies: { ioredis: '0.0.0' } }));
    await writeFile(join(other, 'index.js'), '');
    await using worker = startWorker({ TEST_PACKAGES: folder });
    expect((await worker.next('versions')).ioredis).toBe(pathToFileURL(join(other, 'index.js')).href);
    await rm(folder, { recursive: true });
  });

  it('of the server', async () => {
    await using server = await RedisServer.start();
    const info = await server.text('INFO', 'server');
    const version = (/^valkey_version:(.*)\r$/m.exec(info) ?? /^redis_version:(.*)\r$/m.exec(info))?.[1];
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(version).toBe(asked['server'] ?? version);
  });

  it('of the database', async () => {
    await using server = await MysqlServer.start();
    const [row] = await server.admin('SELECT VERSION() AS version');
    const [version] = /^\d+\.\d+\.\d+/.exec((row as { version: string }).version)!;
    expect(version).toBe(asked['database'] ?? version);
  });
});
