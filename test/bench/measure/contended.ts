import type { Contender } from '../contenders.js';
import type { Load } from '../processes/load.js';
import type { Bench } from '../workload.js';
import { runTogether, type Together } from './together.js';

/** Long enough that no caller gives up. */
export const WAIT_MS = 60_000;
/** Time for callers that still wait at the end. After that their processes are ended. */
const GRACE_MS = 1_500;
const QUICK_GRACE_MS = 200;

let runs = 0;

/** Runs one load on several processes of a contender. Throws if no caller was served: it did not finish. */
export const contended = async (
  { server, crew, quick }: Bench,
  contender: Contender,
  {
    processes,
    url = server.url,
    style = contender.style,
    graceMs = quick ? QUICK_GRACE_MS : GRACE_MS,
    ...load
  }: Omit<Load, 'startAt' | 'register' | 'prefix'> & {
    readonly processes: number;
    readonly url?: string;
    readonly style?: string;
  },
): Promise<Together> => {
  // An ended process leaves its locks behind until they expire: later callers must not meet them.
  const prefix =
    typeof load.keys === 'object' && 'one' in load.keys
      ? `${contender.name}-${runs++}-`
      : `${contender.name}-`;
  const workers = await crew.of(contender, processes, { url, waitMs: WAIT_MS });
  const ran = await runTogether([server], workers, style, { ...load, prefix, graceMs });
  if (ran.unfinished > 0) await crew.dismiss(workers);
  if (ran.rate === 0) {
    throw new Error(ran.firstFailure ?? `nobody was served within ${Math.round(load.forMs)} ms`);
  }
  return ran;
};
