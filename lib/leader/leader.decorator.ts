import { defaultLead } from '../call-arguments.js';
import { isArray } from '../core/errors/describe.js';
import { LockConfigurationError, LockKeyError } from '../core/errors/lock.errors.js';
import { asLabel } from '../core/settings/label.js';
import { LEAD_NAMES, resolveCall } from '../core/settings/lock-call.js';
import { DEFAULT_SETTINGS } from '../core/settings/lock-settings.js';
import { invalidOption, reading } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { checkKey } from '../key/key-check.js';
import { quoteTemplate } from '../key/template-syntax.js';
import { checkTarget, refuseBareUse, whereOf } from '../locked/check-use.js';
import { injectService } from '../locked/lock-binding.js';
import { isGenerator } from './candidates.js';
import { registerLeader } from './leader-methods.js';
import type { LeaderOptions } from './leader.options.js';
import type { Leadership } from './leadership.js';

const LEADER_NAMES: Names<LeaderOptions> = { ...LEAD_NAMES, service: true };

/** A decorator does not know the settings of its module, so it checks against the smallest `watchdogMs`. */
const SMALLEST = { ...DEFAULT_SETTINGS, watchdogMs: DEFAULT_SETTINGS.minWatchdogMs };

/** Method decorator that compiles only on methods that need no argument but the leadership. */
export type LeaderDecorator = <M extends (leadership: Leadership) => unknown>(
  target: object,
  property: PropertyKey,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** Plain JavaScript may call it with anything, so it checks all its arguments. */
const decorate = (...args: readonly unknown[]): LeaderDecorator => {
  refuseBareUse('@Leader', args);
  const [key, given = {}, ...rest] = args;
  return (target, property, descriptor) => {
    const method: unknown = checkTarget('@Leader', target, property, descriptor);
    const where = whereOf(target, property);
    checkLeaderKey(key, where);
    if (rest.some((more) => more !== undefined)) {
      throw new LockConfigurationError(
        `${where}: @Leader takes a key and its options, and nothing after these.`,
      );
    }
    if (isGenerator(method)) {
      throw new LockConfigurationError(
        `${where}: a generator function cannot be @Leader, its body would never run. Make it async.`,
      );
    }
    const { service, ...own } = checkedOptions(given, where);
    const label = own.label ?? asLabel(key);
    injectService(target, service);
    registerLeader(target, { name: property, where, key, options: { ...own, label }, service });
  };
};

/**
 * Calls a method of a singleton provider or controller each time this process becomes the leader of `key`. At most one
 * process leads a key at a time. The process contends from `onApplicationBootstrap` on, until the app stops.
 *
 * - The leadership goes on when the method resolves. It ends when its lock is lost, when the app stops, or with
 *   `leadership.resign()`. Then `leadership.signal` aborts.
 * - The method is never called again before its last call has settled.
 * - If the method rejects, the error is logged, and the lock is released. After a pause (1 to 30 s) the process contends
 *   again. A `LockConfigurationError` is not tried again.
 *
 * The key is used verbatim. It has no placeholders, since the method is called without arguments of the app. Options and defaults: {@link LeaderOptions}.
 *
 * A mistake in the key throws `LockKeyError` when the class is loaded, and a wrong option throws `LockConfigurationError`. At
 * the start, another scope than singleton and two methods with one key are refused.
 *
 * @example
 * `@Leader('leader:index')`
 * async lead({ signal }: Leadership): Promise<void> {
 *   while (!signal.aborted) await this.index.update({ signal });
 * }
 */
export const Leader: (key: string, options?: LeaderOptions) => LeaderDecorator = decorate;

const checkLeaderKey: (key: unknown, where: string) => asserts key is string = (key, where) => {
  if (key === undefined) {
    throw new LockConfigurationError(`${where}: give @Leader a key, such as @Leader('leader:index').`);
  }
  checkKey(key, where);
  if (!/<<|>>/.test(key)) return;
  throw new LockKeyError(
    `${where}: the key ${quoteTemplate(key)} has a placeholder, but a leader is called without arguments. Write the key ` +
      'without << and >>.',
    { key },
  );
};

const checkedOptions = (given: unknown, where: string): LeaderOptions => {
  try {
    return reading('options', () => {
      if (typeof given !== 'object' || given === null || isArray(given))
        invalidOption('options', 'an object such as { watchdogMs: 10_000 }', given);
      const options: LeaderOptions = Object.freeze({ ...(given as LeaderOptions) });
      checkNames(options, '@Leader', LEADER_NAMES);
      const { service, ...own } = options;
      resolveCall(own, defaultLead(SMALLEST), 'lead', SMALLEST);
      if (service !== undefined && typeof service !== 'string')
        invalidOption('service', 'the name of a module', service);
      return options;
    });
  } catch (error) {
    throw new LockConfigurationError(`${where}: ${(error as Error).message}`, { cause: error });
  }
};
