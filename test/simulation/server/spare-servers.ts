import { Valkey } from './valkey.js';

/** More than a run lasts, in ms: the monotonic clock of the next run starts after the end of this one. */
const LONGEST_RUN_MS = 1e9;

const spare: Pick<BorrowedServer, 'valkey' | 'scripts'>[] = [];
let started = 0;

/** A server for one run. */
export interface BorrowedServer {
  readonly valkey: Valkey;
  /** What its monotonic clock shows at the beginning of the run, in ms. */
  readonly monotonicFromMs: number;
  /** The hash of each script that was ever loaded there: to compile one takes as long as many commands. */
  readonly scripts: Map<string, string>;
}

/** Lends out a server for one run at a time: to start one takes much longer than a run. */
export const withServer = async <T>(use: (server: BorrowedServer) => Promise<T>): Promise<T> => {
  const server = spare.pop() ?? {
    valkey: await Valkey.start({ wallMs: () => 0, monotonicMs: () => 0 }),
    scripts: new Map<string, string>(),
  };
  // Not given back after an error: it may be in any state.
  const result = await use({ ...server, monotonicFromMs: ++started * LONGEST_RUN_MS });
  spare.push(server);
  return result;
};
