import type { SectionOptions } from '../core/settings/acquire-options.js';
import { SECTION_NAMES } from '../core/settings/lock-call.js';
import { LOCKED_METADATA } from './locked.metadata.js';
import type { Locked as LockedSignature } from './locked.types.js';
import { sectionDecorator } from './section-decorator.js';

/**
 * Runs a method of any provider or controller inside a lock: the key is rendered from the arguments, the lock is
 * taken, kept while the method runs, and released whatever happens. A locked method never runs without its lock.
 *
 * Keys: `'order:<<userId>>'` by parameter name, `'cart:<<cart.owner.id>>:<<1>>'` by path or index, several for all
 * or none, a function (used verbatim), `<<$request.user.id>>` on HTTP, `<<$name>>` from the module's `context`, or
 * none for `ClassName.methodName`. Mistakes in a key are `LockKeyError` when the class is loaded.
 *
 * Options and their defaults: `LockedOptions`; durations are whole ms. Mistakes in them are
 * `LockConfigurationError` when the class is loaded.
 *
 * At a call it throws `LockNotAcquiredError` (taken for longer than `waitMs`), `LockStoreError` (the store failed),
 * `LockKeyError` (an argument cannot be part of a key), `LockAbortedError` (client gone, app stopping), `LockLostError`
 * (over before the method began, inside a lock on the key that was lost, or after it with `onLost: 'throw'`),
 * `LockConfigurationError` (no lock service, an endless wait against the order). The method's own errors pass
 * untouched.
 *
 * @example
 * @Locked('order:<<userId>>', { waitMs: 2_000 })
 * async placeOrder(userId: string, items: Item[]): Promise<Order> { … }
 */
export const Locked = sectionDecorator({
  name: '@Locked',
  method: 'withLock',
  optionNames: { ...SECTION_NAMES, onBusy: true, service: true },
  severalKeys: true,
  metadataKey: LOCKED_METADATA,
  run: (locks, keys, options: SectionOptions, section) => locks.withLock(keys, options, section),
}) as LockedSignature;
