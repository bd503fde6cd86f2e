// libfaketime sets the clock of a Redis server, for test/faults. Without it those tests say so, and all others run.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { installWithApt, mayInstall } from './apt.mjs';

const WHAT_TO_DO = 'test/faults needs libfaketime (Debian and Ubuntu: apt-get install libfaketime)';

const isThere = () =>
  ['/usr/lib', '/usr/lib64', '/usr/local/lib']
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))])
    .some((folder) => existsSync(join(folder, 'faketime', 'libfaketime.so.1')));

export const ensureFaketime = () => {
  if (isThere()) return;
  if (!mayInstall()) return console.log(`set-up: ${WHAT_TO_DO}`);
  console.log('set-up: installing libfaketime with apt-get');
  try {
    installWithApt('libfaketime');
  } catch (error) {
    console.log(`set-up: ${error.message}; ${WHAT_TO_DO}`);
  }
};
