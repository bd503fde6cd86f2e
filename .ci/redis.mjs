// The tests run against a real server. This finds one, or installs one where that can be done without asking.
import { installWithApt, mayInstall } from './apt.mjs';
import { onPath } from './process.mjs';

const WHAT_TO_DO =
  'the tests need a Redis server: install redis-server (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis) or valkey-server, so that it is on the PATH';

export const findRedisServer = () => onPath('redis-server', 'valkey-server');

export const ensureRedisServer = () => {
  if (findRedisServer()) return;
  if (!mayInstall()) throw new Error(WHAT_TO_DO);
  console.log('set-up: installing redis-server with apt-get (none is on the PATH)');
  try {
    installWithApt('redis-server');
  } catch (error) {
    throw new Error(`${error.message}; ${WHAT_TO_DO}\n${error.output ?? ''}`.trimEnd(), { cause: error });
  }
  if (!findRedisServer())
    throw new Error(`apt-get installed redis-server, but it is not on the PATH; ${WHAT_TO_DO}`);
};
