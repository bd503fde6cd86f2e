import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { deferred } from '../support/async.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { installOldLibraries, OLD_LIBRARIES, type OldClient } from './support/old-libraries.js';

/*
 * The rolling deploys of docs/migration/, with the real libraries: old and new instances contend for one key.
 */

const NAME = 'order';
const KEY = 'order';
/** Rounds of each instance. */
const ROUNDS = 100;
const WAIT_MS = 60_000;
const RUN_MS = 120_000;

type Library = keyof typeof OLD_LIBRARIES;
const ALL = Object.keys(OLD_LIBRARIES) as Library[];
/** murlock without its blocking mode fails at once. */
const WAITING = ALL.filter((library) => library !== 'murlock');
/** redis-semaphore writes a prefix before each name. */
const prefixOf = (library: Library): string => (library === 'redis-semaphore' ? 'mutex:' : '');

/** One version of a service: runs a section under its locks. */
type Version = (section: () => Promise<void>) => Promise<void>;

describe('a rolling deploy', { timeout: RUN_MS }, () => {
  let server: RedisServer;
  let admin: Redis;
  const ends: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    installOldLibraries();
    server = await RedisServer.start();
    admin = new Redis(server.url);
  }, 400_000);
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
    await admin.flushall();
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
  });

  const open = (options: LocksOptions): OpenLocks => {
    const opened = openLocks(server.url, { waitMs: WAIT_MS, ...options });
    ends.push(() => opened.close());
    return opened;
  };
  const openNew = (library: Library): OpenLocks =>
    open({ foreignHold: 'taken', keyPrefix: prefixOf(library) });
  const openOld = async (library: Library): Promise<OldClient> => {
    const old = await OLD_LIBRARIES[library](server.url);
    ends.push(() => old.close());
    return old;
  };

  /** Runs rounds of each version at once. Resolves with the number of sections, and of overlaps. */
  const contend = async (versions: readonly Version[]): Promise<{ sections: number; overlaps: number }> => {
    const seen = { sections: 0, overlaps: 0 };
    const section = async (): Promise<void> => {
      if ((await admin.set('inside', '1', 'PX', WAIT_MS, 'NX')) === null) seen.overlaps += 1;
      await admin.ping();
      await admin.del('inside');
      seen.sections += 1;
    };
    const loop = async (version: Version): Promise<void> => {
      for (let round = 0; round < ROUNDS; round += 1) await version(section);
    };
    await Promise.all(versions.map(loop));
    return seen;
  };

  const newVersion = async ({ locks }: OpenLocks, section: () => Promise<void>): Promise<void> =>
    void (await locks.withLock(KEY, section));

  it.each(WAITING)('of %s with foreignHold has no two holders, and no side fails', async (library) => {
    const old = await Promise.all([openOld(library), openOld(library)]);
    const ours = [openNew(library), openNew(library)];
    const seen = await contend([
      ...old.map(
        (one): Version =>
          (section) =>
            one.run(NAME, section),
      ),
      ...ours.map(
        (one): Version =>
          (section) =>
            newVersion(one, section),
      ),
    ]);
    expect(seen).toEqual({ sections: 4 * ROUNDS, overlaps: 0 });
  });

  it('of murlock with foreignHold has no two holders, and the old side fails while the new one holds', async () => {
    const [old, ours] = [await openOld('murlock'), openNew('murlock')];
    const failures = new Set<string>();
    const [held, met] = [deferred(), deferred()];
    const seen = await contend([
      async (section) => {
        await held.promise;
        await old.run(NAME, section).catch((error: unknown) => {
          failures.add((error as Error).message);
        });
        met.resolve();
      },
      // Its first section lasts until the old side has met the lock.
      (section) =>
        newVersion(ours, async () => {
          held.resolve();
          await met.promise;
          await section();
        }),
    ]);
    expect(seen.overlaps).toBe(0);
    expect(seen.sections).toBeGreaterThanOrEqual(ROUNDS);
    expect([...failures].join()).toContain('WRONGTYPE');
  });

  it('of murlock in two steps has no two holders, and no side fails', async () => {
    const [old, both] = [await openOld('murlock'), await openOld('murlock')];
    const [inner, ours] = [open({ keyPrefix: 'v2:' }), open({ keyPrefix: 'v2:' })];
    // The version between takes the old lock, and the new one inside it, under another name.
    const between: Version = (section) => both.run(NAME, () => newVersion(inner, section));
    const first = await contend([(section) => old.run(NAME, section), between]);
    const second = await contend([between, (section) => newVersion(ours, section)]);
    for (const seen of [first, second]) expect(seen).toEqual({ sections: 2 * ROUNDS, overlaps: 0 });
  });

  it.each<[Library, RegExp]>([
    ['redlock', /unable to achieve a quorum/i],
    ['@sesamecare-oss/redlock', /unable to achieve a quorum/i],
    ['redis-semaphore', /timeout/i],
    ['murlock', /WRONGTYPE/],
  ])(
    'of %s: the old code gets the error of its library while the new one holds',
    async (library, message) => {
      const [old, ours] = [await openOld(library), openNew(library)];
      const lease = await ours.locks.acquire(KEY);
      await expect(old.run(NAME, () => Promise.resolve(), false)).rejects.toThrow(message);
      expect(await lease.verify()).toBe(true);
      await lease.release();
    },
  );

  it.each(ALL)('of %s: the new code finds the key taken while the old one holds', async (library) => {
    const [old, ours] = [await openOld(library), openNew(library)];
    await old.run(NAME, async () => {
      expect(await ours.locks.tryAcquire(KEY)).toBeNull();
      expect(await ours.locks.inspect(KEY)).toMatchObject({ heldAs: 'foreign' });
      expect(await ours.locks.forceUnlock(KEY)).toBe(false);
    });
    await (await ours.locks.acquire(KEY)).release();
  });
});
