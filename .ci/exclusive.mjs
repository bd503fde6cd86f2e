// Runs one set-up at a time: two commands in one checkout must not install or build over each other.
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from './process.mjs';

const PATIENCE_MS = 15 * 60_000;
const LOOK_AGAIN_MS = 200;

const name = `nest-redis-lock-setup-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`;
const lockFile = join(tmpdir(), `${name}.lock`);
const stealFile = join(tmpdir(), `${name}.steal`);

const createAlone = (file) => {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
};

// undefined: no file. NaN: the file was just created, and its pid is not written yet.
const owner = () => {
  try {
    return Number.parseInt(readFileSync(lockFile, 'utf8'), 10);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
};

const isDead = (pid) => {
  if (pid === undefined || Number.isNaN(pid)) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
};

// Removes the file of a process that died here. Only the process that created the steal file may remove it, and checks
// again first. Otherwise two processes could both remove it, and the second one would remove the file of a living
// owner.
const clearDeadOwner = () => {
  if (!isDead(owner()) || !createAlone(stealFile)) return;
  try {
    if (isDead(owner())) rmSync(lockFile, { force: true });
  } finally {
    rmSync(stealFile, { force: true });
  }
};

/** Runs `work` while no other process of this checkout runs its own. */
export const exclusively = async (work) => {
  const deadline = Date.now() + PATIENCE_MS;
  let said = false;
  while (!createAlone(lockFile)) {
    clearDeadOwner();
    if (Date.now() > deadline) {
      throw new Error(
        `another set-up (process ${owner()}) does not end; if there is none, remove ${lockFile} and ${stealFile}`,
      );
    }
    if (!said && owner() !== undefined) {
      said = true;
      console.log(`set-up: waiting for the one that process ${owner()} is doing`);
    }
    await sleep(LOOK_AGAIN_MS);
  }
  const release = () => rmSync(lockFile, { force: true });
  process.once('exit', release);
  const stop = (signal) => process.exit(signal === 'SIGINT' ? 130 : 143);
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    return await work();
  } finally {
    process.off('exit', release).off('SIGINT', stop).off('SIGTERM', stop);
    release();
  }
};
