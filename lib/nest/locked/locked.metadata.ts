import type { KeyWithMode } from '../../core/settings/acquire-options.js';
import type { LimitedOptions, LockedOptions } from './locked.options.js';

/**
 * Metadata key of a method's `@Locked` key and options, for guards, interceptors and other code that inspects handlers.
 *
 * @example const { key, options } = reflector.get<LockedMetadata>(LOCKED_METADATA, context.getHandler());
 */
export const LOCKED_METADATA = 'nest-redis-lock:locked';

/** Metadata key of a method's `@Limited` key and options. It differs from `@Locked`, because a method may have both. */
export const LIMITED_METADATA = 'nest-redis-lock:limited';

/** Key and options as given to `@Locked`. A frozen copy. */
export interface LockedMetadata {
  /** The template, the list of templates, or the key function. */
  readonly key: string | readonly (string | KeyWithMode)[] | ((...args: never[]) => unknown);
  readonly options: LockedOptions;
}

/** Key and options as given to `@Limited`. A frozen copy. */
export interface LimitedMetadata {
  /** The template or the key function. */
  readonly key: string | ((...args: never[]) => unknown);
  readonly options: LimitedOptions;
}
