import { peer } from './peer.js';
import { openRedlock, type RedlockClass } from './redlock.js';
import type { Subject } from './subject.js';

/** The fork of redlock that is kept up for ioredis 5 and later. Configured as redlock is. */
export const sesamecareRedlock: Subject = {
  name: '@sesamecare-oss/redlock',
  insideScripts: ['exists', 'set', 'get', 'pexpire', 'del', 'select'],
  open: openRedlock(() => peer<{ readonly Redlock: RedlockClass }>('@sesamecare-oss/redlock').Redlock),
};
