import { defaultLead } from '../service/call-arguments.js';
import { LockConfigurationError, LockKeyError } from '../../core/errors/lock.errors.js';
import { asLabel } from '../../core/settings/label.js';
import { resolveCall } from '../../core/settings/lock-call.js';
import { DEFAULT_SETTINGS } from '../../core/settings/lock-settings.js';
import { checkObject, invalidOption, named, reading } from '../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../core/settings/option-names.js';
import { namesOf } from '../../core/settings/option-table.js';
import { checkKey } from '../../key/key-check.js';
import { quoteTemplate } from '../../key/template-syntax.js';
import { checkTarget, refuseBareUse, whereOf } from '../locked/check-use.js';
import { injectService } from '../locked/lock-binding.js';
import { checkVary, varyingOptions } from '../locked/varying-options.js';
import { isGenerator } from './candidates.js';
import { registerLeader } from './leader-methods.js';
import type { LeaderOptions, LeadOptions } from './leader.options.js';
import type { Leadership } from './leadership.js';

const LEADER_NAMES = namesOf('lead', 'leader') satisfies Names<LeaderOptions>;

/** A decorator does not know the settings of its module, so it checks against the smallest `watchdogMs`. */
const SMALLEST = { ...DEFAULT_SETTINGS, watchdogMs: DEFAULT_SETTINGS.minWatchdogMs };

/**
 * Method decorator that compiles only on methods that need no argument but the leadership, and in the class that the function
 * for options gets.
 */
export type LeaderDecorator<T extends object = object> = <M extends (leadership: Leadership) => unknown>(
  target: T,
  property: PropertyKey,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** Plain JavaScript may call it with anything, so it checks all its arguments. */
const decorate = (...args: readonly unknown[]): LeaderDecorator => {
  refuseBareUse('@Leader', args);
  const [key, given = {}, ...more] = args;
  return (target, property, descriptor) => {
    const method: unknown = checkTarget('@Leader', target, property, descriptor);
    const where = whereOf(target, property);
    checkLeaderKey(key, where);
    const vary = checkVary('@Leader', where, more);
    if (isGenerator(method)) {
      throw new LockConfigurationError(
        `${where}: a generator function cannot be @Leader, its body would never run. Make it async.`,
      );
    }
    const checked = (read: () => unknown): LeaderOptions => named(where, () => checkedOptions(read()));
    const fixed = checked(() => given);
    const { service } = fixed;
    const options = leadOptions(fixed, key);
    const optionsOf = vary && varyingOptions(fixed, options, vary, (join) => leadOptions(checked(join), key));
    injectService(target, service);
    registerLeader(target, { name: property, where, key, options, optionsOf, service });
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
 * A function returns options that vary, from the instance: `(self) => ({ watchdogMs: self.config.leaseMs })`. It is called each
 * time the process begins to contend.
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
export const Leader: <T extends object = object>(
  key: string,
  options?: LeaderOptions,
  vary?: (self: T) => Pick<LeadOptions, 'watchdogMs'> | undefined,
) => LeaderDecorator<T> = decorate;

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

const checkedOptions = (given: unknown): LeaderOptions =>
  reading('options', () => {
    checkObject('options', 'an object such as { watchdogMs: 10_000 }', given);
    const options: LeaderOptions = Object.freeze({ ...(given as LeaderOptions) });
    checkNames(options, '@Leader', LEADER_NAMES);
    const { service, ...own } = options;
    resolveCall(own, defaultLead(SMALLEST), 'lead', SMALLEST);
    if (service !== undefined && typeof service !== 'string')
      invalidOption('service', 'the name of a module', service);
    return options;
  });

const leadOptions = ({ service: _service, ...own }: LeaderOptions, key: string): LeadOptions => ({
  ...own,
  label: own.label ?? asLabel(key),
});
