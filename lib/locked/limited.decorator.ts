import type { PermitSectionOptions } from '../core/settings/acquire-options.js';
import { PERMIT_SECTION_NAMES } from '../core/settings/lock-call.js';
import { LIMITED_METADATA } from './locked.metadata.js';
import type { Limited as LimitedSignature } from './locked.types.js';
import { sectionDecorator } from './section-decorator.js';

/**
 * Runs a method of any provider or controller with one of the key's permits, of which there are `permits`: so many
 * calls run at once, over all processes, and the others wait. A limited method never runs without its permit.
 *
 * Keys, `onBusy`, `service` and what it throws at a call are those of `@Locked`, but it takes one key, its lease has no
 * fencing token, and a call inside another of the same key takes a permit more. Where callers give different numbers,
 * the last one decides. Without `permits` the number that the store has for the key counts; with none there the call
 * fails with `LockStoreError`.
 *
 * @example
 * @Limited('crm:<<tenant>>', { permits: 3 })
 * async sync(tenant: string): Promise<void> { … }
 */
export const Limited = sectionDecorator({
  name: '@Limited',
  method: 'withPermit',
  optionNames: { ...PERMIT_SECTION_NAMES, onBusy: true, service: true },
  severalKeys: false,
  metadataKey: LIMITED_METADATA,
  run: (locks, [key], options: PermitSectionOptions, section) =>
    locks.withPermit(key as string, options, section),
}) as LimitedSignature;
