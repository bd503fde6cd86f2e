import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { until } from '../../support/async.js';
import { repository } from '../../support/package/pack.js';
import { guardFolder } from '../../support/process-guard.js';
import { BOOT_MS, holdName, newKey, useLab } from '../../support/redis/lab.js';
import { TestWorker } from '../../support/worker.js';
import type { FromVersionWorker, ToVersionWorker, VersionWorkerSetup, Wanted } from './version.worker.js';

/** Rolling deployments: processes of two versions of the library want the same keys. */

type VersionWorker = TestWorker<ToVersionWorker, FromVersionWorker>;

const WORKER = new URL('./version.worker.ts', import.meta.url);
const ROUNDS = 25;

const lab = useLab();

/** The library as it is, compiled from its source. */
const present = (): string => breakLibrary('none', []).url;

/** A later version, whose entries and messages have one word more. */
const later = (): string =>
  breakLibrary('a later version of the wire format', [
    { in: 'WIRE_VERSION', find: "'1'", replace: "'2'" },
    {
      in: 'WAIT_QUEUE',
      find: "not_subscribed, owner }, ' ')",
      replace: "not_subscribed, owner, 'later' }, ' ')",
    },
    { in: 'WAIT_QUEUE', find: "whole(one.left) }, ' ')", replace: "whole(one.left), 'later' }, ' ')" },
    { in: 'READ_WRITE_QUEUE', find: 'whole(span), kind }', replace: "whole(span), kind, 'later' }" },
  ]).url;

/** The last release: the tarball that is kept in this folder. */
const lastRelease = (): string => {
  const here = fileURLToPath(new URL('.', import.meta.url));
  const [tarball = 'no tarball'] = readdirSync(here).filter((name) => name.endsWith('.tgz'));
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-release-'));
  guardFolder(folder);
  execFileSync('tar', ['-xzf', join(here, tarball), '-C', folder]);
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
  return pathToFileURL(join(folder, 'package/dist/esm/index.js')).href;
};

const start = async (library: string): Promise<VersionWorker> => {
  const setup: VersionWorkerSetup = { redis: lab.server.url, library };
  const worker = TestWorker.start<ToVersionWorker, FromVersionWorker>(WORKER, {
    args: [JSON.stringify(setup)],
  });
  await worker.next('ready', { timeoutMs: BOOT_MS });
  return worker;
};

const queueOf: Readonly<Record<string, (name: string) => Promise<number>>> = {
  exclusive: async (name) =>
    (await lab.admin.hkeys(`nest_redis_lock:queue:{${name}}`)).filter((field) => field.startsWith('@'))
      .length,
  fair: (name) => lab.admin.llen(`redisson_lock_queue:{${name}}`),
  write: async (name) => Math.max(0, (await lab.admin.hlen(`nest_redis_lock:rw_queue:{${name}}`)) - 1),
};

describe.each([
  ['the last release', lastRelease],
  ['a later version of the wire format', later],
])('beside %s', (_, other) => {
  let workers: readonly VersionWorker[];

  beforeAll(async () => {
    const [one, two] = [present(), other()];
    workers = await Promise.all([one, two, one, two].map(start));
  }, 4 * BOOT_MS);
  afterAll(() => Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]())));

  it.each(['exclusive', 'fair', 'write'] as const)(
    'waiters of both versions get a key in the order of arrival (%s)',
    async (mode) => {
      const key = newKey();
      const queued = async (count: number): Promise<unknown> =>
        until(async () => (await queueOf[mode]!(holdName(key))) === count, {
          what: `${count} processes wait`,
        });

      for (const order of [workers, workers.toReversed()]) {
        for (const [before, worker] of order.entries()) {
          worker.send({ type: 'acquire', key, mode });
          if (before === 0) await worker.next('acquired');
          else await queued(before);
        }
        for (const [before, worker] of order.entries()) {
          // Another process would keep the key.
          if (before > 0) await worker.next('acquired');
          worker.send({ type: 'release' });
          await worker.next('released');
        }
      }
    },
    90_000,
  );

  it.each<[name: string, modes: readonly Wanted[]]>([
    ['exclusive', ['exclusive', 'exclusive']],
    ['fair', ['fair', 'fair']],
    ['read-write', ['read', 'write', 'read', 'write']],
    ['permit', ['permit', 'permit']],
  ])(
    'processes of both versions exclude each other, and none starves (%s)',
    async (_name, modes) => {
      const key = newKey();
      for (const worker of workers) worker.send({ type: 'contend', key, modes, rounds: ROUNDS });
      for (const worker of workers) {
        const { violations } = await worker.next('contended', { timeoutMs: 60_000 });
        expect(violations).toEqual([]);
      }
    },
    120_000,
  );
});
