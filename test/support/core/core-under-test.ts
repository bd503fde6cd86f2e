import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockLogger } from '../../../lib/core/report/lock-events.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings, type LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { ScriptedStore } from './scripted-store.js';
import { VirtualRuntime } from './virtual-runtime.js';

/** Collects what is logged. */
export class Log implements LockLogger {
  readonly lines: string[] = [];
  readonly debugLines: string[] = [];

  warn(message: string): void {
    this.lines.push(message);
  }

  log(message: string): void {
    this.lines.push(message);
  }

  debug(message: string): void {
    this.debugLines.push(message);
  }
}

/** The whole core on a virtual clock, before a store that the test answers for. */
export const coreUnderTest = (input: LockSettingsInput = {}, store = new ScriptedStore()) => {
  const runtime = new VirtualRuntime();
  const log = new Log();
  const settings = resolveSettings({ keyPrefix: '', ...input });
  const manager = new LockManager(store, settings, log, runtime);
  const call = (options: Partial<LockCall> = {}): LockCall => ({ ...defaultCall(settings), ...options });
  return { runtime, store, log, manager, call };
};

/** What became of a promise so far. */
export interface Watched<T> {
  readonly state: 'pending' | 'fulfilled' | 'rejected';
  readonly value: T | undefined;
  readonly error: unknown;
}

/** Looks at a promise from outside; a rejection counts as handled. */
export const watched = <T>(promise: Promise<T>): Watched<T> => {
  const seen: { -readonly [K in keyof Watched<T>]: Watched<T>[K] } = {
    state: 'pending',
    value: undefined,
    error: undefined,
  };
  promise.then(
    (value) => {
      seen.state = 'fulfilled';
      seen.value = value;
    },
    (error: unknown) => {
      seen.state = 'rejected';
      seen.error = error;
    },
  );
  return seen;
};
