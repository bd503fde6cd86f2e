import { workerChannel } from '../../support/worker-channel.js';
import type * as library from 'nest-redis-lock';
import type { LockStore } from 'nest-redis-lock/store';

export type StoreName = 'redis' | 'postgres' | 'mysql';

export interface Work {
  readonly locks: number;
  readonly callers: number;
  /** `own`: each caller has its own key. The others: all callers want the same. */
  readonly keys: 'own' | 'one' | 'fair' | 'permits' | 'semaphore';
}

export type ToPair =
  | { readonly type: 'open'; readonly dist: string; readonly store: StoreName; readonly url: string }
  | { readonly type: 'run'; readonly work: Work };

export type FromPair =
  { readonly type: 'opened' } | { readonly type: 'ran'; readonly cpuUs: number; readonly violations: number };

const WAIT = { waitMs: 60_000 };
const PERMITS = 5;

type Library = typeof library;
type Locks = Awaited<ReturnType<Library['createLockService']>>;

const locks: Locks[] = [];
const channel = workerChannel<ToPair, FromPair>(async () => {
  await Promise.all(locks.map((one) => one.close()));
});

const storeOf = async (dist: string, store: StoreName, url: string): Promise<LockStore | undefined> => {
  if (store === 'redis') return undefined;
  const loaded = (await import(`${dist}/${store}.js`)) as Record<string, new (options: object) => LockStore>;
  return store === 'mysql'
    ? new loaded['MysqlStore']!({ uri: url })
    : new loaded['PostgresStore']!({ connectionString: url });
};

channel.on('open', async ({ dist, store, url }) => {
  const { createLockService } = (await import(`${dist}/index.js`)) as Library;
  // Two services, so that callers wait in the store as well.
  for (let i = 0; i < 2; i++) {
    const own = await storeOf(dist, store, url);
    locks.push(await createLockService(own ? { store: own } : { redis: url }));
  }
  await Promise.all(locks.map((one) => one.ping()));
  if (store === 'redis') await locks[0]!.semaphore('pairs-semaphore').trySetPermits(PERMITS);
  channel.send({ type: 'opened' });
});

channel.on('run', async ({ work: { locks: count, callers, keys } }) => {
  let left = count;
  let inside = 0;
  let violations = 0;
  const limit = keys === 'permits' || keys === 'semaphore' ? PERMITS : 1;
  const section = async (): Promise<void> => {
    if (keys !== 'own' && ++inside > limit) violations++;
    // The others see it as held.
    await new Promise(setImmediate);
    if (keys !== 'own') inside--;
  };
  const once = (service: Locks, caller: number): Promise<unknown> => {
    switch (keys) {
      case 'own':
        return service.withLock(`pairs-${caller}`, WAIT, section);
      case 'one':
        return service.withLock('pairs-one', WAIT, section);
      case 'fair':
        return service.withLock('pairs-fair', { ...WAIT, mode: 'fair' }, section);
      case 'permits':
        return service.permits('pairs-permits', { permits: PERMITS }).withPermit(WAIT, section);
      case 'semaphore':
        return inSemaphore(service, section);
    }
  };
  const before = process.cpuUsage();
  await Promise.all(
    Array.from({ length: callers }, async (_none, caller) => {
      const service = locks[caller % locks.length]!;
      while (left-- > 0) await once(service, caller);
    }),
  );
  const { user, system } = process.cpuUsage(before);
  channel.send({ type: 'ran', cpuUs: user + system, violations });
});

const inSemaphore = async (service: Locks, section: () => Promise<void>): Promise<void> => {
  const semaphore = service.semaphore('pairs-semaphore');
  await semaphore.acquire(1, WAIT);
  try {
    await section();
  } finally {
    await semaphore.release();
  }
};
