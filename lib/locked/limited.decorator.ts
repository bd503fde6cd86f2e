import type { PermitSectionOptions } from '../core/settings/acquire-options.js';
import { PERMIT_SECTION_NAMES } from '../core/settings/lock-call.js';
import { LIMITED_METADATA } from './locked.metadata.js';
import type { Limited as LimitedSignature } from './locked.types.js';
import { sectionDecorator } from './section-decorator.js';

/** Runs a method of any provider or controller with one of the key's permits. */
export const Limited = sectionDecorator({
  name: '@Limited',
  method: 'withPermit',
  optionNames: { ...PERMIT_SECTION_NAMES, onBusy: true, service: true },
  severalKeys: false,
  metadataKey: LIMITED_METADATA,
  run: (locks, [key], options: PermitSectionOptions, section) =>
    locks.withPermit(key as string, options, section),
}) as LimitedSignature;
