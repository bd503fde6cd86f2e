// With TEST_PACKAGES in the environment the library and its tests get some of their packages from elsewhere: those that
// the package.json of the folder of that name depends on. `npm run test:matrix` has other versions of Nest and ioredis there.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const folder = process.env.TEST_PACKAGES && resolve(process.env.TEST_PACKAGES);

/** The file from which such packages have to be looked up; undefined without TEST_PACKAGES. */
export const otherPackages = folder && join(folder, 'package.json');

const names = otherPackages ? Object.keys(JSON.parse(readFileSync(otherPackages, 'utf8')).dependencies) : [];

/** Whether what is imported under this name is to come from there. */
export const isElsewhere = (specifier) =>
  names.some((name) => specifier === name || specifier.startsWith(`${name}/`));
