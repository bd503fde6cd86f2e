import type * as Common from '@nestjs/common';
import type * as Core from '@nestjs/core';
import { peer } from './peer.js';
import type { Section, Subject } from './subject.js';

interface MurLock {
  readonly MurLockModule: {
    forRoot(options: {
      readonly redisOptions: { readonly url: string };
      readonly wait: number;
      readonly maxAttempts: number;
      readonly logLevel: 'error';
      readonly blocking: boolean;
    }): Common.DynamicModule;
  };
  readonly MurLock: (releaseMs: number, ...keyParams: string[]) => MethodDecorator;
}

/** As in its README. */
const RELEASE_MS = 5_000;
/**
 * There is no default. Its README has 1,000 ms, which would leave every lock unused most of the time; this is the
 * default of the other libraries that look again after a fixed time.
 */
const WAIT_BETWEEN_TRIES_MS = 200;

/**
 * In its blocking mode, which waits without end and always for the same time; otherwise it waits longer after every
 * try, and gives up. It does not renew.
 */
export const murlock: Subject = {
  name: 'murlock',
  insideScripts: ['get', 'set', 'del'],
  async open({ url, leaseMs = RELEASE_MS }) {
    const { Injectable, Module } = peer<typeof Common>('@nestjs/common');
    const { NestFactory } = peer<typeof Core>('@nestjs/core');
    const { MurLock, MurLockModule } = peer<MurLock>('murlock');

    @Injectable()
    class Sections {
      @MurLock(leaseMs, '_key')
      run(_key: string, section: Section): Promise<void> {
        return section();
      }
    }

    @Module({
      imports: [
        MurLockModule.forRoot({
          redisOptions: { url },
          wait: WAIT_BETWEEN_TRIES_MS,
          maxAttempts: 1,
          logLevel: 'error',
          blocking: true,
        }),
      ],
      providers: [Sections],
    })
    class BenchModule {}

    const app = await NestFactory.createApplicationContext(BenchModule, { logger: false });
    const sections = app.get(Sections);
    return {
      styles: { '@MurLock': (key, section) => sections.run(key, section) },
      close: () => app.close(),
    };
  },
};
