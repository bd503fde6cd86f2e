import { systemRuntime } from '../../../lib/core/util/runtime.js';
import type { StoreHost } from '../../../lib/core/seam/lock-store.js';

/** A lock service as its store sees it, for tests of a store alone. */
export const storeHost = (overrides: Partial<StoreHost> = {}): StoreHost => ({
  runtime: systemRuntime(),
  keyPrefix: 'lock:',
  watchdogMs: 30_000,
  log: () => undefined,
  warn: () => undefined,
  atRisk: () => undefined,
  revocationRequested: () => undefined,
  ...overrides,
});
