import type { KeyWithMode } from '../core/settings/acquire-options.js';
import type { LimitedOptions, LockedOptions } from './locked.options.js';

/**
 * Where a locked method says how it is locked, for guards, interceptors and whatever looks at handlers.
 *
 * @example const { key, options } = reflector.get<LockedMetadata>(LOCKED_METADATA, context.getHandler());
 */
export const LOCKED_METADATA = 'nest-redis-lock:locked';

/** The same for `@Limited`. A method may have both decorators, so each has a place of its own. */
export const LIMITED_METADATA = 'nest-redis-lock:limited';

/** How a method is locked, as it was given to `@Locked`. A frozen copy: changing it would change nothing. */
export interface LockedMetadata {
  /** The template, the templates, or the key function; without any, what stands for them: `ClassName.methodName`. */
  readonly key: string | readonly (string | KeyWithMode)[] | ((...args: never[]) => unknown);
  readonly options: LockedOptions;
}

/** How a method is limited, as it was given to `@Limited`. A frozen copy, too. */
export interface LimitedMetadata {
  /** The template or the key function; without any, what stands for them: `ClassName.methodName`. */
  readonly key: string | ((...args: never[]) => unknown);
  readonly options: LimitedOptions;
}
