import { LockManager } from '../../../lib/core/lock-manager.js';
import { DEFAULT_SETTINGS, type LockSettings } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { deferred } from '../../support/async.js';
import { Log } from '../../support/core/core-under-test.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

/** Longer than anything a test lets pass. */
const FOR_EVER_MS = 1e15;

/** A lock service in a time that passes only when the test says so. */
export class VirtualLocks {
  readonly runtime = new VirtualRuntime();
  readonly space = new MemorySpace({ now: () => this.runtime.now() });
  readonly store = new MemoryStore({ shared: this.space });
  readonly manager: LockManager;
  readonly locks: LockService;

  constructor(readonly settings: LockSettings = DEFAULT_SETTINGS) {
    this.manager = new LockManager(this.store, settings, new Log(), this.runtime);
    this.locks = new LockService(this.manager);
  }

  /** From now on releases are done, but not answered until the returned function is called. */
  holdUpReleases(): () => void {
    const held = deferred();
    const { exclusive } = this.store.kinds;
    const release = exclusive.release.bind(exclusive);
    exclusive.release = async (...args) => {
      const [reply] = await Promise.all([release(...args), held.promise]);
      return reply;
    };
    return held.resolve;
  }

  /** Takes the only permit of the key as another process would. */
  takePermitElsewhere(key: string): void {
    this.space.of('permit').acquire({
      kind: 'permit',
      finalKey: this.settings.keyPrefix + key,
      owner: 'e'.repeat(32),
      leaseMs: FOR_EVER_MS,
      tokens: 0,
      waits: false,
      of: 1,
    });
  }

  /** Takes the key as another process would, until the returned function is called. */
  takeElsewhere(key: string): () => void {
    const finalKey = this.settings.keyPrefix + key;
    const claim = {
      kind: 'exclusive',
      finalKey,
      owner: 'elsewhere:1',
      leaseMs: FOR_EVER_MS,
      tokens: 0,
      waits: false,
    } as const;
    this.space.of('exclusive').acquire(claim);
    return () => void this.space.forceUnlock(finalKey);
  }
}
