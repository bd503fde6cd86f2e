import type { Plugin } from 'vitest/config';
import { isElsewhere, otherPackages } from './index.mjs';

/** Has vitest look up the packages of `TEST_PACKAGES` there. */
export const fromOtherPackages = (): Plugin => ({
  name: 'other-packages',
  enforce: 'pre',
  resolveId(specifier, importer, options) {
    if (!otherPackages || importer?.includes('/node_modules/') || !isElsewhere(specifier)) return null;
    return this.resolve(specifier, otherPackages, { ...options, skipSelf: true });
  },
});
