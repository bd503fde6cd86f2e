import type { SectionOptions } from '../../core/settings/acquire-options.js';
import { namesOf } from '../../core/settings/option-table.js';
import { LOCKED_METADATA } from './locked.metadata.js';
import type { LockedSignature } from './locked.types.js';
import { sectionDecorator } from './section-decorator.js';

/** Runs a method of any provider or controller inside a lock. */
export const Locked = sectionDecorator({
  name: '@Locked',
  method: 'withLock',
  optionNames: namesOf('lock', 'section', 'once', 'decorator'),
  severalKeys: true,
  metadataKey: LOCKED_METADATA,
  run: (locks, keys, options: SectionOptions, section) => locks.withLock(keys, options, section),
}) as LockedSignature;
