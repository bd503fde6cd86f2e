import { handlesTaken, handlingTaken } from '../../core/settings/lock-call.js';
import { namesOf } from '../../core/settings/option-table.js';
import type { Permits } from '../service/permits.js';
import { LIMITED_METADATA } from './locked.metadata.js';
import type { LimitedOptions } from './locked.options.js';
import type { LimitedSignature } from './locked.types.js';
import { sectionDecorator } from './section-decorator.js';

/** Runs a method of any provider or controller with one of the key's permits. */
export const Limited = sectionDecorator({
  name: '@Limited',
  method: '@Limited',
  optionNames: namesOf('permit', 'section', 'number', 'decorator'),
  severalKeys: false,
  metadataKey: LIMITED_METADATA,
  run: async (locks, [key], given: Omit<LimitedOptions, 'onBusy' | 'service'>, section) => {
    const { permits, ...options } = given;
    // A mock may return nothing: then the section does not run, which is reported as such.
    const handle = locks.permits(key as string, { permits }) as Permits | undefined;
    await handle?.withPermit(handlingTaken(options, handlesTaken(given)), section);
  },
}) as LimitedSignature;
