import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** The heap in use after everything that can be collected has been, in bytes. */
export const heapAfterCollection = async (): Promise<number> => {
  // Twice, with a turn between: finalizers of the first one let go of more.
  gc();
  await new Promise((resolve) => setImmediate(resolve));
  gc();
  return process.memoryUsage().heapUsed;
};
