// Installs packages of Debian and Ubuntu, where that needs no confirmation.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { capture, onPath } from './process.mjs';

const POLICY = '/usr/sbin/policy-rc.d';

export const mayInstall = () =>
  process.platform === 'linux' && process.getuid?.() === 0 && onPath('apt-get') !== undefined;

// Debian starts a service as soon as its package is installed. A policy that exits with 101 ("forbidden") prevents
// that.
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

/** Returns a description of what `installWithApt` does to the machine. */
export const APT_DOES = (name) =>
  `apt-get update, then apt-get install -y --no-install-recommends ${name}; ${POLICY} keeps its service from starting meanwhile`;

export const installWithApt = (name) => {
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const patient = ['-o', 'DPkg::Lock::Timeout=300', '-qq'];
  capture('apt-get', [...patient, 'update'], options);
  withoutStartingServices(() =>
    capture('apt-get', [...patient, 'install', '-y', '--no-install-recommends', name], options),
  );
};
