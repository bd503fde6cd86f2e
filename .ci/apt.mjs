// Installs packages of Debian and Ubuntu, where that needs no confirmation.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { capture, onPath } from './process.mjs';

const POLICY = '/usr/sbin/policy-rc.d';
const NO_CLUSTER = '/etc/postgresql-common/createcluster.d/nest-redis-lock.conf';

export const mayInstall = () =>
  process.platform === 'linux' && process.getuid?.() === 0 && onPath('apt-get') !== undefined;

/** Writes a file, runs `work`, and removes the file, also when the process ends meanwhile. */
const withFile = (path, text, mode, work) => {
  if (existsSync(path)) return work();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode });
  const remove = () => rmSync(path, { force: true });
  process.once('exit', remove);
  try {
    return work();
  } finally {
    process.off('exit', remove);
    remove();
  }
};

// Debian starts a service as soon as its package is installed. A policy that exits with 101 ("forbidden") prevents
// that. The package of PostgreSQL also creates a cluster, unless its settings forbid that.
const withoutStartingServices = (work) =>
  withFile(POLICY, '#!/bin/sh\nexit 101\n', 0o755, () =>
    withFile(NO_CLUSTER, 'create_main_cluster = false\n', 0o644, work),
  );

/** Returns a description of what `installWithApt` does to the machine. */
export const APT_DOES = (...names) =>
  `apt-get update, then apt-get install -y --no-install-recommends ${names.join(' ')}; ${POLICY} keeps its service from starting meanwhile`;

export const installWithApt = (...names) => {
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const patient = ['-o', 'DPkg::Lock::Timeout=300', '-qq'];
  capture('apt-get', [...patient, 'update'], options);
  withoutStartingServices(() =>
    capture('apt-get', [...patient, 'install', '-y', '--no-install-recommends', ...names], options),
  );
};
