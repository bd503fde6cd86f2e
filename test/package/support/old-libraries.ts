import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';

/** Folder with the libraries that users come from. The benchmark compares with them, too. */
const PEERS = new URL('../../bench/peers/', import.meta.url);
const require = createRequire(PEERS);
/** Loads one of them. The checks of this repository need none of them installed. */
const peer = <T>(name: string): T => require(name) as T;

/** Lease of the old locks, in ms. */
export const OLD_LEASE_MS = 5_000;
/** Pause of the old libraries between two tries, in ms: short, so that they contend often. */
const RETRY_MS = 20;
/** More tries than a run has. */
const TRIES = 100_000;

/** A client of an old library, with a connection for itself. */
export interface OldClient {
  /** Runs a section under the lock of a name. `waits`: false to fail at once. */
  run<T>(name: string, section: () => Promise<T>, waits?: boolean): Promise<T>;
  close(): Promise<unknown>;
}

type Open = (url: string) => Promise<OldClient>;

interface RedlockClient {
  acquire(names: readonly string[], ms: number): Promise<{ release(): Promise<unknown> }>;
}
type RedlockClass = new (clients: readonly Redis[], settings: object) => RedlockClient;

interface Mutex {
  acquire(): Promise<void>;
  release(): Promise<void>;
}
type MutexClass = new (client: Redis, name: string, options: object) => Mutex;

interface MurLockService {
  runWithLock<T>(name: string, releaseMs: number, waitMs: number, section: () => Promise<T>): Promise<T>;
}
interface MurLockPackage {
  readonly MurLockModule: { forRoot(options: object): object };
  readonly MurLockService: object;
}
interface NestPackage {
  readonly NestFactory: {
    createApplicationContext(
      module: object,
      options: object,
    ): Promise<{ get(token: object): MurLockService; close(): Promise<void> }>;
  };
}

const connect = (url: string): Redis =>
  new (peer<{ Redis: new (url: string) => Redis }>('ioredis').Redis)(url);

const openRedlock =
  (load: () => RedlockClass): Open =>
  (url) => {
    const client = connect(url);
    const settings = { retryDelay: RETRY_MS, retryJitter: RETRY_MS };
    const [waiting, once] = [TRIES, 0].map(
      (retryCount) => new (load())([client], { ...settings, retryCount }),
    );
    return Promise.resolve({
      async run(name, section, waits = true) {
        const lock = await (waits ? waiting! : once!).acquire([name], OLD_LEASE_MS);
        try {
          return await section();
        } finally {
          await lock.release();
        }
      },
      close: () => client.quit(),
    });
  };

const openRedisSemaphore: Open = (url) => {
  const client = connect(url);
  const { Mutex } = peer<{ Mutex: MutexClass }>('redis-semaphore');
  return Promise.resolve({
    async run(name, section, waits = true) {
      const acquireTimeout = waits ? 60_000 : 1;
      const options = { acquireTimeout, lockTimeout: OLD_LEASE_MS, retryInterval: RETRY_MS };
      const mutex = new Mutex(client, name, options);
      await mutex.acquire();
      try {
        return await section();
      } finally {
        await mutex.release();
      }
    },
    close: () => client.quit(),
  });
};

/** Opens murlock, which fails after some tries, or waits without end in its blocking mode. */
const openMurlock =
  (blocking: boolean): Open =>
  async (url) => {
    const { MurLockModule, MurLockService } = peer<MurLockPackage>('murlock');
    const { NestFactory } = peer<NestPackage>('@nestjs/core');
    const options = {
      redisOptions: { url },
      wait: RETRY_MS,
      maxAttempts: TRIES,
      logLevel: 'error',
      blocking,
    };
    const module = class App {};
    const app = await NestFactory.createApplicationContext(
      { module, imports: [MurLockModule.forRoot(options)] },
      { logger: false },
    );
    const service = app.get(MurLockService);
    return {
      run: (name, section) => service.runWithLock(name, OLD_LEASE_MS, RETRY_MS, section),
      close: () => app.close(),
    };
  };

export const OLD_LIBRARIES = {
  redlock: openRedlock(() => peer<{ default: RedlockClass }>('redlock').default),
  '@sesamecare-oss/redlock': openRedlock(
    () => peer<{ Redlock: RedlockClass }>('@sesamecare-oss/redlock').Redlock,
  ),
  'redis-semaphore': openRedisSemaphore,
  murlock: openMurlock(false),
  'murlock, blocking': openMurlock(true),
} as const satisfies Readonly<Record<string, Open>>;

/** Installs the libraries, if they are not there. */
export const installOldLibraries = (): void => {
  execFileSync(process.execPath, [fileURLToPath(new URL('install.mjs', PEERS))], { stdio: 'inherit' });
};
