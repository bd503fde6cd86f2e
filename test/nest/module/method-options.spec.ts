// Options of a method that only its module and its store can judge.
import { Injectable } from '@nestjs/common';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, Locked, LockService, RedisLockModule } from 'nest-redis-lock';
import type { LockStore } from 'nest-redis-lock/store';
import type { LockedOptions } from '../../../lib/locked/locked.options.js';
import { useApps } from '../../support/nest/apps.js';

const apps = useApps();

const start = (options: LockedOptions, store: LockStore = new MemoryStore()) => {
  @Injectable()
  class Jobs {
    @Locked('job', options as { maxHoldMs?: number })
    async run(): Promise<void> {}
  }
  return apps.context({
    module: class AppModule {},
    imports: [RedisLockModule.forRoot({ store, watchdogMs: 6_000 })],
    providers: [Jobs],
  });
};

const ofSessions = (): LockStore =>
  Object.assign(new MemoryStore(), { name: 'SessionStore', lease: { type: 'session', timeoutMs: 9_000 } });

describe('an app does not start when a method has', () => {
  it.each([
    [
      'a maxHoldMs below a third of the watchdogMs of its module',
      { maxHoldMs: 1_999 },
      undefined,
      'maxHoldMs must be',
    ],
    [
      'oncePerMs, and its store ends locks with a session',
      { oncePerMs: 60_000 },
      ofSessions,
      'oncePerMs: SessionStore',
    ],
    ['holdAtLeastMs, and such a store', { holdAtLeastMs: 60_000 }, ofSessions, 'holdAtLeastMs: SessionStore'],
  ] as const)('%s', async (_what, options, store, message) => {
    const starting = start(options, store?.());
    await expect(starting).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(starting).rejects.toThrow(`Jobs.run: ${message}`);
  });

  it('nothing of that', async () => {
    const app = await start({ maxHoldMs: 2_000, oncePerMs: 60_000 });
    expect(app.get(LockService).usage.leases).toBe(0);
  });
});

describe('an app', () => {
  it('starts with a method for a kind of lock that its store lacks: only its calls fail', async () => {
    const store = Object.assign(new MemoryStore(), { name: 'Plain' });
    const { exclusive } = store.kinds;
    Object.assign(store, { kinds: { exclusive } });
    const app = await start({ mode: 'fair' }, store);
    expect(app.get(LockService).usage.leases).toBe(0);
  });
});
