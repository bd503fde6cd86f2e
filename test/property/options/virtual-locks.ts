import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import type { KindStore } from '../../../lib/core/seam/lock-store.js';
import { DEFAULT_SETTINGS, type LockSettings } from '../../../lib/core/settings/lock-settings.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { deferred } from '../../support/async.js';
import { Log } from '../../support/core/core-under-test.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

/** Key of all calls. A method "pay" of a class "Orders" has it without giving one. */
export const KEY = 'Orders.pay';

/** Longer than anything a test lets pass. */
const FOR_EVER_MS = 1e15;

/** A lock service in a time that passes only when the test says so. */
export class VirtualLocks {
  readonly runtime = Object.assign(new VirtualRuntime(), { newId: systemRuntime().newId });
  readonly space = new MemorySpace({ now: () => this.runtime.now() });
  readonly store = new MemoryStore({ shared: this.space });
  readonly manager: LockManager;
  readonly locks: LockService;
  /** Number of requests that the store got. */
  requests = 0;

  constructor(readonly settings: LockSettings = DEFAULT_SETTINGS) {
    // Records would be renewed all through the virtual years.
    this.store.processes.write = () =>
      Promise.reject(new LockConfigurationError('there are no records here.'));
    this.manager = new LockManager(this.store, settings, new Log(), this.runtime);
    this.locks = new LockService(this.manager);
    const store = this.store as unknown as { request: (work: () => unknown) => Promise<unknown> };
    const request = store.request.bind(store);
    store.request = (work) => {
      this.requests += 1;
      return request(work);
    };
  }

  /** Executes releases from now on, but does not reply to them until the returned function is called. */
  holdUpReleases(): () => void {
    const held = deferred();
    for (const kind of Object.values(this.store.kinds) as KindStore[]) {
      const release = kind.release.bind(kind);
      kind.release = async (...args) => {
        const [reply] = await Promise.all([release(...args), held.promise]);
        return reply;
      };
    }
    return held.resolve;
  }

  /** Takes the key, or its only permit, as another process would, until the returned function is called. */
  takeElsewhere(kind: 'exclusive' | 'permit' = 'exclusive'): () => void {
    const finalKey = this.settings.keyPrefix + KEY;
    const claim = { finalKey, owner: 'e'.repeat(32), leaseMs: FOR_EVER_MS, tokens: 0, waits: false };
    if (kind === 'permit') this.space.of(kind).acquire({ ...claim, kind, of: 1 });
    else this.space.of(kind).acquire({ ...claim, kind });
    return () => void this.space.forceUnlock(finalKey);
  }
}
