// The tests run against a real server. This finds one, or installs one where that can be done without asking.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { capture, onPath } from './process.mjs';

const WHAT_TO_DO =
  'the tests need a Redis server: install redis-server (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis) or valkey-server, so that it is on the PATH';

const POLICY = '/usr/sbin/policy-rc.d';

// Debian starts a service as soon as its package is there. A policy that answers 101 ("forbidden") keeps it from doing so.
const withoutStartingServices = (work) => {
  if (existsSync(POLICY)) return work();
  writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  const remove = () => rmSync(POLICY, { force: true });
  process.once('exit', remove);
  try {
    return work();
  } finally {
    process.off('exit', remove);
    remove();
  }
};

const installWithApt = () => {
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const patient = ['-o', 'DPkg::Lock::Timeout=300', '-qq'];
  capture('apt-get', [...patient, 'update'], options);
  withoutStartingServices(() =>
    capture('apt-get', [...patient, 'install', '-y', '--no-install-recommends', 'redis-server'], options),
  );
};

export const findRedisServer = () => onPath('redis-server', 'valkey-server');

export const ensureRedisServer = () => {
  if (findRedisServer()) return;
  const mayInstall = process.platform === 'linux' && process.getuid?.() === 0 && onPath('apt-get');
  if (!mayInstall) throw new Error(WHAT_TO_DO);
  console.log('set-up: installing redis-server with apt-get (none is on the PATH)');
  try {
    installWithApt();
  } catch (error) {
    throw new Error(`${error.message}; ${WHAT_TO_DO}\n${error.output ?? ''}`.trimEnd(), { cause: error });
  }
  if (!findRedisServer())
    throw new Error(`apt-get installed redis-server, but it is not on the PATH; ${WHAT_TO_DO}`);
};
