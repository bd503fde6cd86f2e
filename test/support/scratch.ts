import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';

const IN_MEMORY = '/dev/shm';

const root = (): string => {
  try {
    accessSync(IN_MEMORY, constants.R_OK | constants.W_OK | constants.X_OK);
    return IN_MEMORY;
  } catch {
    return tmpdir();
  }
};

/**
 * Where servers and histories of tests keep their files: in memory where the machine offers it. Other tests install
 * whole apps meanwhile, and a server that waits for the disk behind them does not answer in time.
 */
export const SCRATCH = root();
