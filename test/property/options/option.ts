import type { ResolvedOptions } from '../../../lib/nest/module/redis-lock.options.js';
import type { VirtualLocks } from './virtual-locks.js';

/** Locks under the options that a place was given, on a virtual clock. */
export interface Locks {
  readonly world: VirtualLocks;
  /** Runs the work under the options. Resolves with its result, or with undefined when it did not run. */
  readonly run: (work: () => unknown) => Promise<unknown>;
  /** Leaves nothing to acquire, until the returned function is called. */
  readonly exhaust: () => Promise<() => unknown>;
  /** The other options of a module. */
  readonly module?: ResolvedOptions & { readonly exports: readonly unknown[] };
}

/** A row of the table: what an option takes according to the README, and what the locks then do. */
export interface Option {
  /** What it must be, in the words of the error. Without it, the error has only its name. */
  readonly is?: string;
  readonly allows: (value: unknown) => boolean;
  /** Allowed values, its limits among them. */
  readonly examples: readonly unknown[];
  /** Values that look allowed, and are not. */
  readonly wrong: readonly unknown[];
  /** What applies when it is undefined. */
  readonly otherwise?: unknown;
  /** It cannot be undefined. */
  readonly required?: true;
  /** Fails unless the locks do what the value says. */
  readonly does?: (locks: Locks, value: never) => Promise<void> | void;
}

export type Options = Readonly<Record<string, Option>>;

export const A_YEAR_MS = 366 * 24 * 3_600_000;

export const NO_WHOLE_NUMBERS: readonly unknown[] = [
  ...[-0.5, 0.5, 1.5, NaN, -Infinity, '1000', '5s', '', null, true, false, {}, [], [1_000], 1n],
  ...[new Date(), () => 1],
];

export const isWhole = (value: unknown, min: number, max: number): boolean =>
  Number.isInteger(value) && (value as number) >= min && (value as number) <= max;

export const whole = (min: number, max: number, unit = '') => ({
  is: `a whole number${unit} from ${min} to ${max}`,
  allows: (value: unknown) => isWhole(value, min, max),
  examples: [min, min + 1, max] as readonly unknown[],
  wrong: [...NO_WHOLE_NUMBERS, min - 1, max + 1, 2 ** 63, Infinity],
});

export const ms = (min: number, max = A_YEAR_MS) => whole(min, max, ' of milliseconds');

export const choice = (...choices: readonly unknown[]) => ({
  is: choices.map((one) => JSON.stringify(one)).join(' or '),
  allows: (value: unknown) => choices.includes(value),
  examples: choices,
  wrong: [null, 0, 1, 'yes', 'no', 'ignore', 'log', 'true', 'Redisson', 'java', {}],
});

export const isFunction = (value: unknown): boolean => typeof value === 'function';

export const aFunction = (is = 'a function') => ({
  is,
  allows: isFunction,
  examples: [() => ({})],
  wrong: ['acme', { tenant: 'acme' }],
});

/** An object that gives no option: each of its members is undefined. */
export const isEmptyObject = (value: unknown): boolean => {
  try {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    return Object.values(value).every((one) => one === undefined);
  } catch {
    return false;
  }
};
