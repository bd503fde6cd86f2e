import { checkChoice, checkObject, reading } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';

/** Options of {@link RedisLockInstrumentation}; `undefined` keeps the default. */
export interface RedisLockInstrumentationConfig {
  /** Whether the constructor calls {@link RedisLockInstrumentation.enable}. Default: true. */
  readonly enabled?: boolean;
  /**
   * Whether spans have the keys, as `redactKey` shows them, in the attribute `redis_lock.keys`. Metrics never have them.
   * Default: false.
   */
  readonly keys?: boolean;
}

const CONFIG_NAMES: Names<RedisLockInstrumentationConfig> = { enabled: true, keys: true };
const PLACE = 'RedisLockInstrumentation';

/** Checks the options, and fills in the defaults. */
export const resolveConfig = (
  given: RedisLockInstrumentationConfig = {},
): Required<RedisLockInstrumentationConfig> =>
  reading(`The options of ${PLACE}`, () => {
    checkObject(`The options of ${PLACE}`, 'an object such as { keys: true }', given);
    checkNames(given, PLACE, CONFIG_NAMES);
    return {
      enabled: checkChoice('enabled', given.enabled, [true, false]) ?? true,
      keys: checkChoice('keys', given.keys, [true, false]) ?? false,
    };
  });
