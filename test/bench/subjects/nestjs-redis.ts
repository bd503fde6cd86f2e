import type * as Common from '@nestjs/common';
import type * as Core from '@nestjs/core';
import { peer, TRIES_WITHOUT_END } from './peer.js';
import type { Section, Style, Subject } from './subject.js';

interface NodeRedis {
  readonly createClient: (options: { readonly url: string }) => {
    connect(): Promise<unknown>;
    destroy(): void;
  };
}

interface RedlockService {
  withLock(
    keys: string[],
    ttlMs: number,
    run: () => Promise<void>,
    options: { readonly extensionThresholdMs: number },
  ): Promise<void>;
}

interface NestjsRedisLock {
  readonly RedlockService: new () => RedlockService;
  readonly RedlockModule: {
    forRoot(options: {
      readonly clients: readonly object[];
      readonly redlockConfig: { readonly maxRetryAttempts: number };
    }): Common.DynamicModule;
  };
  readonly Redlock: (key: string, ttlMs: number) => MethodDecorator;
}

/** As in its README. The default of 100 ms is less than some sections take on a busy machine. */
const TTL_MS = 5_000;

/** Renewal is something to be asked for, and what it is by default then. The decorator has no way to ask. */
const RENEWED = { extensionThresholdMs: 1_000 };

/**
 * Its decorator takes fixed keys only, and each key needs a method of its own: one is made when a key is first asked
 * for. Where there are many keys its service is called. Tries are without end: the default of 3 gives up after 0.8 s.
 * The delay between them is the default (200 ms and up to 100 ms more).
 */
export const nestjsRedis: Subject = {
  name: '@nestjs-redis/lock',
  insideScripts: ['exists', 'set', 'get', 'mget', 'del'],
  async open({ url, leaseMs: ttl = TTL_MS }) {
    const { Module } = peer<typeof Common>('@nestjs/common');
    const { ModuleRef, NestFactory } = peer<typeof Core>('@nestjs/core');
    const { Redlock, RedlockModule, RedlockService } = peer<NestjsRedisLock>('@nestjs-redis/lock');
    const client = peer<NodeRedis>('redis').createClient({ url });
    await client.connect();

    @Module({
      imports: [
        RedlockModule.forRoot({
          clients: [client],
          redlockConfig: { maxRetryAttempts: TRIES_WITHOUT_END },
        }),
      ],
    })
    class BenchModule {}

    const app = await NestFactory.createApplicationContext(BenchModule, { logger: false });
    const service = app.get(RedlockService);

    const decorated = new Map<string, Style>();
    const make = async (key: string): Promise<Style> => {
      class Sections {
        @Redlock(`lock:${key}`, ttl)
        run(section: Section): Promise<void> {
          return section();
        }
      }
      const sections = await app.get(ModuleRef).create(Sections);
      return (_key, section) => sections.run(section);
    };
    return {
      styles: {
        '@Redlock': async (key, section) => {
          const style = decorated.get(key) ?? (await make(key));
          decorated.set(key, style);
          return style(key, section);
        },
        withLock: (key, section) => service.withLock([`lock:${key}`], ttl, () => section(), RENEWED),
      },
      close: async () => {
        await app.close();
        client.destroy();
      },
    };
  },
};
