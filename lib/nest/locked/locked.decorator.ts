import type { SectionOptions } from '../../core/settings/acquire-options.js';
import { LOCKED_NAMES } from '../../core/settings/lock-call.js';
import { LOCKED_METADATA } from './locked.metadata.js';
import type { LockedSignature } from './locked.types.js';
import { sectionDecorator } from './section-decorator.js';

/** Runs a method of any provider or controller inside a lock. */
export const Locked = sectionDecorator({
  name: '@Locked',
  method: 'withLock',
  optionNames: { ...LOCKED_NAMES, onBusy: true, service: true },
  severalKeys: true,
  metadataKey: LOCKED_METADATA,
  run: (locks, keys, options: SectionOptions, section) => locks.withLock(keys, options, section),
}) as LockedSignature;
