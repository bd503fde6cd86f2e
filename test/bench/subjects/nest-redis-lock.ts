import { Injectable, Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locked, LockService, RedisLockModule } from 'nest-redis-lock';
import type { LockStore } from 'nest-redis-lock/store';
import { INSIDE_SCRIPTS } from './inside-scripts.js';
import { PERMITS, ZOOKEEPER, type Section, type Subject, type SubjectOptions } from './subject.js';

@Injectable()
class LockedSections {
  @Locked('<<_key>>')
  run(_key: string, section: Section): Promise<void> {
    return section();
  }
}

export interface BenchApp {
  readonly app: INestApplicationContext;
  readonly locks: LockService;
}

/** Returns the store of a database or of ZooKeeper; undefined for Redis. */
const storeAt = async (url: string, lanes?: number): Promise<LockStore | undefined> => {
  if (url.startsWith('mysql:')) {
    const { MysqlStore } = await import('nest-redis-lock/mysql');
    return new MysqlStore({ uri: url, lanes });
  }
  if (url.startsWith('postgres:')) {
    const { PostgresStore } = await import('nest-redis-lock/postgres');
    return new PostgresStore({ connectionString: url, lanes });
  }
  if (url.startsWith(ZOOKEEPER)) {
    const { ZooKeeperStore } = await import('nest-redis-lock/zookeeper');
    return new ZooKeeperStore({ connect: url.slice(ZOOKEEPER.length) });
  }
  return undefined;
};

/** The servers of the benchmark have just been started, and have forgotten nothing. */
const quorumOf = async (urls: readonly string[]): Promise<LockStore> => {
  const { QuorumStore, RedisStore } = await import('nest-redis-lock/redis');
  return new QuorumStore({ nodes: urls.map((redis) => new RedisStore({ redis })), delayAfterRestartMs: 0 });
};

/** Starts a Nest app as a user has it, without a transport. */
export const openApp = async ({
  url,
  quorum,
  cluster,
  connections,
  ...settings
}: Omit<SubjectOptions, 'leaseMs'> & { readonly watchdogMs?: number }): Promise<BenchApp> => {
  const store = quorum ? await quorumOf(quorum) : await storeAt(url, connections);
  const place = store ? { store } : { redis: cluster ? { cluster } : url };
  @Module({
    imports: [RedisLockModule.forRoot({ ...place, ...settings })],
    providers: [LockedSections],
  })
  class BenchModule {}

  const app = await NestFactory.createApplicationContext(BenchModule, { logger: false });
  const locks = app.get(LockService);
  await locks.ping();
  return { app, locks };
};

/** This library, as it is built in dist/. */
export const nestRedisLock: Subject = {
  name: 'nest-redis-lock',
  insideScripts: INSIDE_SCRIPTS,
  async open({ leaseMs, services = 1, ...options }) {
    const open = () => openApp({ ...options, ...(leaseMs && { watchdogMs: leaseMs }) });
    const [first, ...others] = await Promise.all(Array.from({ length: services }, open));
    const { app, locks } = first!;
    const idle = [locks, ...others.map((other) => other.locks)];
    const sections = app.get(LockedSections);
    const numbered = new Set<string>();
    return {
      styles: {
        // Without tokens a lease has none to ask for.
        withLock: (key, section) =>
          options.fencing === false ? locks.withLock(key, () => section()) : locks.withLock(key, section),
        // As many callers as services, so each caller keeps to one.
        'withLock, a service for each caller': async (key, section) => {
          const service = idle.pop()!;
          try {
            await service.withLock(key, section);
          } finally {
            idle.push(service);
          }
        },
        'withLock, options': (key, section) => locks.withLock(key, { waitMs: 5_000 }, section),
        'withLock, awaitRelease: false': (key, section) =>
          locks.withLock(key, { awaitRelease: false }, section),
        'read-write': (key, section, mode) => locks.withLock(key, { mode }, section),
        withPermit: (key, section) => locks.permits(key, { permits: PERMITS }).withPermit(section),
        semaphore: async (key, section) => {
          const semaphore = locks.semaphore(key);
          // The first caller sets the number of permits.
          if (!numbered.has(key)) await semaphore.trySetPermits(PERMITS);
          numbered.add(key);
          await semaphore.acquire();
          try {
            await section();
          } finally {
            await semaphore.release();
          }
        },
        '@Locked': (key, section) => sections.run(key, section),
      },
      close: async () => {
        for (const other of [first!, ...others]) await other.app.close();
      },
    };
  },
};
