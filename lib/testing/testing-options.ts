import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { isArray } from '../core/util/describe.js';
import {
  resolveSettings,
  type LockSettings,
  type LockSettingsInput,
} from '../core/settings/lock-settings.js';
import { checkChoice, checkMs, checkObject, invalidOption, reading } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { namesOf } from '../core/settings/option-table.js';
import type { ModulePlace } from '../nest/module/redis-lock.options.js';

/** `memory`: locks exclude each other in this process. `off`: every lock and permit is granted at once. */
export type TestingMode = 'memory' | 'off';

/** Settings of locks in a test. Durations are whole ms; `undefined` keeps the default. */
export interface TestingSettings extends LockSettingsInput {
  /**
   * Limit of every wait in ms: for locks, permits, semaphores and latches, also with a greater `waitMs` or `Infinity` at a
   * decorator. A test that would wait for 10 s then fails soon, and the error names this option. Minimum: 1. `Infinity`: no
   * limit. Default: 1,000.
   */
  readonly maxWaitMs?: number | undefined;
}

/** Options that the factory of `RedisLockTestingModule.forRootAsync` returns. */
export interface RedisLockTestingAsyncOptions extends TestingSettings {
  /**
   * `memory`: locks exclude each other in this process. `off`: every lock and permit is granted at once. Default:
   * `memory`.
   */
  readonly mode?: TestingMode | undefined;
  /** Function that returns the values for `<<$name>>` in key templates. */
  readonly context?: (() => Record<string, unknown>) | undefined;
}

/** Options of `RedisLockTestingModule.forRoot`. Durations are whole ms; `undefined` keeps the default. */
export interface RedisLockTestingOptions extends RedisLockTestingAsyncOptions {
  /** Names of further lock modules that this one replaces, beside the unnamed one. Default: none. */
  readonly names?: readonly string[] | undefined;
}

/** A nested call without its proof waits for itself: its test fails after this. */
const DEFAULT_MAX_WAIT_MS = 1_000;

const TESTING_NAMES = namesOf('settings', 'cap') satisfies Names<TestingSettings>;

const OPTION_NAMES = namesOf('settings', 'cap', 'testing') satisfies Names<RedisLockTestingAsyncOptions>;

/** Place of the module's options, for messages. */
export const TESTING_MODULE: ModulePlace = {
  owner: 'RedisLockTestingModule',
  example: "{ mode: 'memory' }",
  names: OPTION_NAMES,
  beside: 'names',
};

const PLACE = `${TESTING_MODULE.owner}.forRoot()`;

const checkWhole = (options: unknown): void =>
  checkObject(`The options of ${PLACE}`, `an object such as ${TESTING_MODULE.example}`, options);

/** Options of a testing module or service with every default filled in. */
export interface ResolvedTestingOptions {
  readonly mode: TestingMode;
  readonly settings: LockSettings;
  readonly context: (() => Record<string, unknown>) | undefined;
}

/** @param names names of the options that are allowed here */
const resolve = (
  options: RedisLockTestingAsyncOptions,
  owner: string,
  names: Readonly<Record<string, true>>,
): ResolvedTestingOptions => {
  checkNames(options, owner, names);
  const { context } = options;
  if (context !== undefined && typeof context !== 'function')
    invalidOption('context', 'a function that returns an object', context);
  const mode = checkChoice('mode', options.mode, ['memory', 'off'] as const) ?? 'memory';
  const maxWaitMs = checkMs('maxWaitMs', options.maxWaitMs, { min: 1, infinite: true });
  const settings = resolveSettings(options);
  return {
    mode,
    settings: { ...settings, excludes: mode === 'memory', maxWaitMs: maxWaitMs ?? DEFAULT_MAX_WAIT_MS },
    context,
  };
};

/**
 * Returns the options of the module with defaults.
 *
 * @throws LockConfigurationError naming the invalid option
 */
export const resolveTestingOptions = (options: RedisLockTestingAsyncOptions): ResolvedTestingOptions => {
  checkWhole(options);
  return reading(`The options of ${PLACE}`, () => resolve(options, PLACE, OPTION_NAMES));
};

/**
 * Checks the options of `forRoot`, which has `names` among them.
 *
 * @throws LockConfigurationError naming the invalid option
 */
export const checkTestingOptions = (options: RedisLockTestingOptions): void => {
  checkWhole(options);
  reading(`The options of ${PLACE}`, () => {
    const { names, ...own } = options;
    checkModuleNames(names);
    resolve(own, PLACE, OPTION_NAMES);
  });
};

/** Returns the settings of a service without Nest with defaults. */
export const resolveTestingSettings = (
  mode: TestingMode,
  settings: TestingSettings,
): ResolvedTestingOptions =>
  reading('The settings of createTestingLocks', () => {
    checkObject('The settings of createTestingLocks', 'an object such as { waitMs: 100 }', settings);
    checkNames(settings, 'createTestingLocks', TESTING_NAMES);
    return resolve({ ...settings, mode }, 'createTestingLocks', OPTION_NAMES);
  });

/** Checks the names of the modules that the testing module replaces. */
export const checkModuleNames = (names: unknown): void => {
  if (names !== undefined && !(isArray(names) && names.every((name) => typeof name === 'string')))
    invalidOption('names', 'an array of names', names);
};

/** Factory of a module that was imported without `forRoot()`, which would override it. */
export const withoutForRoot = (): never => {
  throw new LockConfigurationError(
    'RedisLockTestingModule is imported without forRoot(): write RedisLockTestingModule.forRoot().',
  );
};
