import type { LockLogger } from '../core/report/lock-events.js';
import { systemRuntime, type Runtime } from '../core/util/runtime.js';

/** Logger of locks in tests. */
export const SILENT: LockLogger = { warn: () => undefined, log: () => undefined };

/** Returns a runtime with a plain clock: fake timers move it, and it must not take that for a sleeping machine. */
export const testingRuntime = (): Runtime => systemRuntime({ now: () => performance.now() });
