import { inspect } from 'node:util';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockEvents } from '../../../lib/core/report/lock-events.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { resolveSettings, type LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log, watched, type Watched } from '../../support/core/core-under-test.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

export const SECRET = 'user-4711-secret';
export const KEY = `order:${SECRET}`;
/** How the hook of the tests shows {@link KEY}. */
export const SHOWN = 'order:<user>';
export const redactKey = (key: string): string => key.replaceAll(SECRET, '<user>');

const EVENTS: Readonly<Record<keyof LockEvents, true>> = {
  ...{ acquired: true, busy: true, waiting: true, 'slow-hold': true, released: true, lost: true },
  ...{ 'leader-elected': true, 'leader-lost': true },
  ...{ 'revocation-requested': true, 'store-down': true, 'store-up': true },
};

/** Returns everything that a log or an error tracker could show of a value. */
export const textsOf = (value: unknown): string[] => [
  inspect(value, { depth: 20, showHidden: true, maxStringLength: Infinity }),
  String(value),
  ...(value instanceof Error ? [value.stack ?? '', JSON.stringify(value), ...textsOf(value.cause)] : []),
];

let ids = 0;

/** A lock service that redacts its keys, on a memory store and a virtual clock; and all that it shows. */
export class RedactedLocks {
  /** Two services on one space need different ids. */
  readonly runtime = Object.assign(new VirtualRuntime(), { newId: () => `id-${(ids += 1)}` });
  readonly manager: LockManager;
  readonly locks: LockService;
  readonly log = new Log();
  private readonly seen: string[] = [];
  /** Whether every request fails. */
  isDown = false;

  constructor(
    options: LockSettingsInput = {},
    readonly space = new MemorySpace({ now: () => this.runtime.now() }),
  ) {
    const store = new MemoryStore({ shared: this.space });
    const inner = store as unknown as { request: (work: () => unknown) => Promise<unknown> };
    const request = inner.request.bind(store);
    inner.request = (work) =>
      this.isDown
        ? Promise.reject(new StoreFailure('the store is down', 'not-executed', { passing: true }))
        : request(work);
    const settings = resolveSettings({ redactKey, ...options });
    this.manager = new LockManager(store, settings, this.log, this.runtime);
    this.locks = new LockService(this.manager);
    for (const event of Object.keys(EVENTS) as (keyof LockEvents)[])
      this.locks.on(event, (payload) => this.saw(event, payload));
  }

  /** All texts so far: logs, events, and what the test has passed to {@link saw}. */
  get texts(): string {
    return [...this.seen, ...this.log.lines, ...this.log.debugLines].join('\n');
  }

  saw(...values: readonly unknown[]): void {
    for (const value of values) this.seen.push(...textsOf(value));
  }

  /** Lets time pass until the call has failed, and collects its error. */
  async fails(call: () => unknown, code?: string): Promise<void> {
    let result: Watched<unknown>;
    try {
      result = watched(Promise.resolve(call()));
    } catch (error) {
      result = { state: 'rejected', value: undefined, error };
    }
    for (let i = 0; i < 200 && result.state === 'pending'; i += 1) await this.runtime.pass(100);
    if (result.state !== 'rejected') throw new Error(`The call did not fail: it is ${result.state}`);
    if (code !== undefined && (result.error as { code?: string }).code !== code) throw result.error;
    this.saw(result.error);
  }
}
