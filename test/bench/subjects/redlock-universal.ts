import type { INestApplicationContext } from '@nestjs/common';
import type * as Common from '@nestjs/common';
import type * as Core from '@nestjs/core';
import type { Redis } from 'ioredis';
import { connect, peer, TRIES_WITHOUT_END } from './peer.js';
import type { Section, Style, Subject } from './subject.js';

interface RedlockUniversal {
  readonly IoredisAdapter: new (client: Redis) => object;
  readonly createLock: (options: {
    readonly adapter: object;
    readonly key: string;
    readonly ttl: number;
    readonly retryAttempts: number;
  }) => { using(routine: () => Promise<void>): Promise<void> };
  readonly createRedlock: (options: {
    readonly adapters: readonly object[];
    readonly key: string;
    readonly ttl: number;
    readonly retryAttempts: number;
  }) => { using(routine: () => Promise<void>): Promise<void> };
}

interface NestjsRedlockUniversal {
  readonly RedlockModule: {
    forRoot(options: {
      readonly nodes: readonly object[];
      readonly defaultTtl: number;
    }): Common.DynamicModule;
  };
  readonly Redlock: (options: {
    readonly key: (...args: string[]) => string;
    readonly ttl: number;
    readonly retryAttempts: number;
  }) => MethodDecorator;
}

/** The default of its decorator and of its locks. */
const TTL_MS = 30_000;

const openNest = async (
  adapter: object,
  ttl: number,
): Promise<{ app: INestApplicationContext; style: Style }> => {
  const { Injectable, Module } = peer<typeof Common>('@nestjs/common');
  const { NestFactory } = peer<typeof Core>('@nestjs/core');
  const { Redlock, RedlockModule } = peer<NestjsRedlockUniversal>('nestjs-redlock-universal');

  @Injectable()
  class Sections {
    @Redlock({ key: (key) => `lock:${key}`, ttl, retryAttempts: TRIES_WITHOUT_END })
    run(_key: string, section: Section): Promise<void> {
      return section();
    }
  }

  @Module({ imports: [RedlockModule.forRoot({ nodes: [adapter], defaultTtl: ttl })], providers: [Sections] })
  class BenchModule {}

  const app = await NestFactory.createApplicationContext(BenchModule, { logger: false });
  const sections = app.get(Sections);
  return { app, style: (key, section) => sections.run(key, section) };
};

/**
 * redlock-universal through the decorator of nestjs-redlock-universal, and by itself. Tries are without end: the
 * default of 3 gives up after 0.6 s. The delay between them is the default (200 ms), and so are lease and renewal.
 */
export const redlockUniversal: Subject = {
  name: 'redlock-universal',
  insideScripts: ['get', 'del', 'pexpire', 'pttl'],
  async open({ url, quorum = [url], leaseMs: ttl = TTL_MS }) {
    const clients = await Promise.all(quorum.map((server) => connect(server)));
    const { createLock, createRedlock, IoredisAdapter } = peer<RedlockUniversal>('redlock-universal');
    const adapters = clients.map((client) => new IoredisAdapter(client));
    const adapter = adapters[0]!;
    const { app, style } = await openNest(adapter, ttl);
    return {
      styles: {
        '@Redlock': style,
        using: (key, section) =>
          createLock({ adapter, key: `lock:${key}`, ttl, retryAttempts: TRIES_WITHOUT_END }).using(() =>
            section(),
          ),
        createRedlock: (key, section) =>
          createRedlock({ adapters, key: `lock:${key}`, ttl, retryAttempts: TRIES_WITHOUT_END }).using(() =>
            section(),
          ),
      },
      close: async () => {
        await app.close();
        for (const client of clients) client.disconnect();
      },
    };
  },
};
