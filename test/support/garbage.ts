import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
// Else a collection also forgets the code of functions that did not run lately, up to a megabyte of them.
setFlagsFromString('--no-flush-bytecode');
const collect = runInNewContext('gc') as () => void;

/** Collects garbage, including what only a finished turn of the event loop lets go of. */
export const collectGarbage = async (): Promise<void> => {
  for (let i = 0; i < 3; i += 1) {
    await turn();
    collect();
  }
};

/** The heap in use after everything that can be collected has been, in bytes. */
export const heapAfterCollection = async (): Promise<number> => {
  await collectGarbage();
  return process.memoryUsage().heapUsed;
};
