import { textOf } from '../util/describe.js';
/** Whether a failed request may have changed anything in the store. */
export type StoreOutcome = 'not-executed' | 'unknown';

/**
 * Error of a store, and the only one that it throws. It means "the store failed", never "the key is taken". Its message
 * does not contain the key: the core adds the one that may be shown.
 *
 * A store may use a subclass to remember how the request was sent. The core passes it back in `KindStore.release`.
 */
export class StoreFailure extends Error {
  override readonly name: string = 'StoreFailure';

  constructor(
    message: string,
    /** `not-executed`: certainly nothing happened. `unknown`: it may have happened, or may still happen. */
    readonly outcome: StoreOutcome,
    options?: {
      cause?: unknown;
      /** Whether the store is up and asks for a retry soon, for example while a slot moves. Default: false. */
      transient?: boolean;
      /** Whether the store may recover without any change; waits go on. `transient` implies it. Default: false. */
      passing?: boolean;
      /** Whether only this key cannot be used, because a foreign value has its name. Default: false. */
      keyOnly?: boolean;
      /**
       * Whether only this claim was rejected, because of its options; other claims of the key may be granted. Implies
       * `keyOnly`. Default: false.
       */
      claimOnly?: boolean;
      /**
       * Whether the store works, but this process asks for more than it serves, so the request was never sent. Default:
       * false.
       */
      overloaded?: boolean;
    },
  ) {
    super(message, { cause: options?.cause });
    this.transient = options?.transient ?? false;
    this.passing = this.transient || (options?.passing ?? false);
    this.claimOnly = options?.claimOnly ?? false;
    this.keyOnly = this.claimOnly || (options?.keyOnly ?? false);
    this.overloaded = options?.overloaded ?? false;
  }

  readonly transient: boolean;
  readonly passing: boolean;
  readonly keyOnly: boolean;
  readonly claimOnly: boolean;
  readonly overloaded: boolean;
}

export const isNotExecuted = (failure: unknown): boolean =>
  failure instanceof StoreFailure && failure.outcome === 'not-executed';

const withoutFullStop = (text: string): string => text.replace(/\.+$/, '');

/**
 * Returns what failed and why, as text without a full stop. A cause that the message contains already is
 * not repeated.
 */
export const textWithCause = (failure: unknown): string => {
  const text = withoutFullStop(textOf(failure));
  if (!(failure instanceof StoreFailure) || failure.cause === undefined) return text;
  const cause = withoutFullStop(textOf(failure.cause));
  return text.includes(cause) ? text : `${text} (${cause})`;
};

/** Wraps a request that may be executed or not without any difference: a temporary failure becomes `not-executed`. */
export const harmless = <T>(request: Promise<T>): Promise<T> =>
  request.catch((failure: unknown): never => {
    if (!(failure instanceof StoreFailure) || !failure.passing) throw failure;
    throw new StoreFailure(failure.message, 'not-executed', failure);
  });
