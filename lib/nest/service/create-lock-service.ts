import { Logger } from '@nestjs/common';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { LockManager } from '../../core/service/lock-manager.js';
import { reading } from '../../core/settings/option-checks.js';
import { LockService } from './lock.service.js';
import {
  resolveOptions,
  WITHOUT_NEST,
  type RedisLockModuleOptions,
  type ResolvedOptions,
} from '../module/redis-lock.options.js';
import { storeOf } from '../module/store-of-options.js';

/**
 * Options of {@link createLockService}: the options of `RedisLockModule.forRoot` without `interceptor`, `context`,
 * `leaders` and `name`. Durations are whole ms; `undefined` keeps the default.
 */
export type LockServiceOptions = Omit<RedisLockModuleOptions, 'interceptor' | 'context' | 'leaders'>;

/** Lock service that belongs to no Nest app. Its creator closes it. */
export interface StandaloneLockService extends LockService {
  /**
   * Does what an app does when it stops: rejects waiting and new callers, gives running sections `shutdownGraceMs`, and
   * closes the store. Holds of sections that still run expire with their leases. A further call returns the same promise.
   *
   * @example await locks.close();
   */
  close(): Promise<void>;
  /** Calls {@link close}, at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What to do instead, for each option of the module that means nothing without Nest. */
const ONLY_IN_NEST: Readonly<Record<string, string>> = {
  interceptor: 'It replies for the handlers of a Nest app. Leave it out, and read error.code of a LockError.',
  context: "It is for the keys of @Locked. Leave it out, and use lockKey('report:<<tenant>>', { tenant }).",
  leaders: 'It is for an app that is loaded by a script. Leave it out, and do not call lead.',
  name: 'It tells the modules of one app apart. Leave it out, and keep each service in its own variable.',
};

const checkMisplaced = (options: unknown): void => {
  if (typeof options !== 'object' || options === null) return;
  for (const [name, remedy] of Object.entries(ONLY_IN_NEST)) {
    if ((options as Record<string, unknown>)[name] !== undefined)
      throw new LockConfigurationError(`${name} is no option of createLockService. ${remedy}`);
  }
};

const resolve = (options: LockServiceOptions): ResolvedOptions => {
  reading('The options of createLockService', () => checkMisplaced(options));
  return resolveOptions(options, WITHOUT_NEST);
};

/**
 * Creates a lock service without a Nest app: for scripts, workers and command line tools. It opens the store as the
 * start of an app does: an unreachable store only logs a warning, and the first lock tries again. Close the service at
 * the end, because its connections keep the process alive.
 *
 * `@Locked`, `@Limited` and `@Leader` work only on objects that Nest creates: use `withLock` and `lead` instead.
 *
 * @throws LockConfigurationError for an invalid option, and when locks cannot work with this setup of the store
 *
 * @example
 * await using locks = await createLockService({ redis: 'redis://localhost:6379' });
 * await locks.withLock('nightly-report', () => report());
 */
export const createLockService = async (options: LockServiceOptions): Promise<StandaloneLockService> => {
  const resolved = resolve(options);
  const manager = new LockManager(await storeOf(resolved), resolved.settings, new Logger('LockService'));
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= manager.close());
  try {
    await manager.open();
  } catch (error) {
    await close();
    throw error;
  }
  return Object.assign(new LockService(manager), { close, [Symbol.asyncDispose]: close });
};
