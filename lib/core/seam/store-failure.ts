import { textOf } from '../errors/describe.js';
/** Whether a failed request can have changed anything in the store. */
export type StoreOutcome = 'not-executed' | 'unknown';

// A store made by one of the two builds can be given to a module of the other.
const BRAND = Symbol.for('nest-redis-lock:store-failure');

/**
 * The only thing a store throws. It means "the store failed", never "the key is taken".
 *
 * A store may subclass it to remember how the request was sent, and gets it back in `KindStore.release`.
 */
export class StoreFailure extends Error {
  override readonly name: string = 'StoreFailure';

  constructor(
    message: string,
    /** `not-executed`: certainly nothing happened. `unknown`: it may have happened, or may still happen. */
    readonly outcome: StoreOutcome,
    options?: {
      cause?: unknown;
      /** The store is up and asks to be tried again shortly, for example while a slot moves. */
      transient?: boolean;
      /** The store may work again without anything being changed; a wait goes on. `transient` implies it. Default: false. */
      passing?: boolean;
      /** Only this key cannot be used (a foreign value has its name); the store itself works. */
      keyOnly?: boolean;
      /** Only this claim was refused, because of what it asked for: others of the same key may be granted. */
      claimOnly?: boolean;
    },
  ) {
    super(message, { cause: options?.cause });
    this.transient = options?.transient ?? false;
    this.passing = this.transient || (options?.passing ?? false);
    this.keyOnly = options?.keyOnly ?? false;
    this.claimOnly = options?.claimOnly ?? false;
    Object.defineProperty(this, BRAND, { value: true });
  }

  readonly transient: boolean;
  readonly passing: boolean;
  readonly keyOnly: boolean;
  readonly claimOnly: boolean;

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass is a store's own business; only its prototype chain can tell.
    if (Object.getPrototypeOf(this) !== Error)
      return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

/** What has failed and why, as text for the log. A cause that the message has already is not repeated. */
export const textWithCause = (failure: unknown): string => {
  const text = textOf(failure);
  if (!(failure instanceof StoreFailure) || failure.cause === undefined) return text;
  const cause = textOf(failure.cause);
  return text.includes(cause) ? text : `${text} (${cause})`;
};

/** The same request, of which it does not matter whether it was executed: its failure for a passing reason left nothing. */
export const harmless = <T>(request: Promise<T>): Promise<T> =>
  request.catch((failure: unknown): never => {
    if (!(failure instanceof StoreFailure) || !failure.passing) throw failure;
    const { message, cause, transient, passing } = failure;
    throw new StoreFailure(message, 'not-executed', { cause, transient, passing });
  });
