import { afterEach, describe, expect, it, vi } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { collectUnhandledRejections } from '../../support/async.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

afterEach(() => {
  vi.restoreAllMocks();
});

const UNUSED = { leases: 0, keys: 0, holds: 0, undoing: 0 };

/** Anything can be thrown in JavaScript, also what cannot be printed. */
describe('whatever is thrown by', () => {
  it('a section passes untouched, as does what it gives', async () => {
    await forAnyValue([], async (value) => {
      const { locks } = new VirtualLocks();
      const given = await locks.withLock('k', async () => [value]);
      expect(given[0] === value || Number.isNaN(value)).toBe(true);
      const outcome = await outcomeOf(() => locks.withLock('k', () => Promise.reject(value)));
      expect('thrown' in outcome && (outcome.thrown === value || Number.isNaN(value))).toBe(true);
      expect(locks.usage).toEqual(UNUSED);
    });
  });

  it('a listener harms no lock, also when it is a promise that rejects', async () => {
    const unhandled = collectUnhandledRejections();
    await forAnyValue([], async (value) => {
      const { locks } = new VirtualLocks();
      locks.on('acquired', () => {
        throw value;
      });
      const rejects = (): unknown => Promise.reject(value);
      locks.on('acquired', rejects);
      expect(await locks.withLock('k', () => 'ran')).toBe('ran');
      expect(locks.usage).toEqual(UNUSED);
    });
    expect(await unhandled.finish()).toEqual([]);
  });

  it('a logger harms no lock', async () => {
    const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    await forAnyValue([], async (value) => {
      const throws = (): never => {
        throw value;
      };
      const manager = new LockManager(new MemoryStore(), DEFAULT_SETTINGS, { warn: throws, log: throws });
      const locks = new LockService(manager);
      const lost = locks.withLock('k', { onLost: 'throw' }, () => locks.forceUnlock('k'));
      await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
    });
    expect(emitWarning).toHaveBeenCalledWith(
      expect.stringContaining('The logger of the lock service failed'),
    );
  });
});
