import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardFolder } from '../../support/process-guard.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { Sample } from '../comparison.js';
import type { LoadResult, Load } from '../processes/load.js';
import { subjectNamed } from '../subjects/index.js';
import { monotonicMs } from './clock.js';
import { overcrowded } from './overcrowded.js';
import { commandCountsOf, sentBetween } from './redis-commands.js';
import { Register } from './register.js';
import { jain, sum } from './statistics.js';

/** Long enough for all processes to have got the message. */
const START_IN_MS = 60;

/** Gives `use` the register that all processes check exclusion in. */
export const withRegister = async <T>(use: (path: string) => Promise<T>): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-bench-'));
  guardFolder(folder);
  try {
    const path = join(folder, 'register');
    Register.create(path);
    return await use(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** The results of processes that ran the same load at the same time. */
export interface Together extends Omit<Sample, 'values'> {
  readonly results: readonly LoadResult[];
  /** Sections that began within the time, for each second. */
  readonly rate: number;
  /** Share of the time in which a caller was inside, in percent. */
  readonly busyShare: number;
  /** Jain's index over all callers. */
  readonly jain: number;
  readonly jainOfProcesses: number;
  readonly unserved: number;
  /** Callers that still waited when the time and the grace were over. */
  readonly unfinished: number;
  readonly longestWaitMs: number;
  /** For each section; undefined when there was none. */
  readonly commands: number | undefined;
  readonly cpuUs: number | undefined;
}

/** A process whose callers run a load. */
export interface Runner {
  /** Its subject. */
  readonly name: string;
  readonly pid: number;
  /** What the server counts although no client sent it. Default: what the subject says. */
  readonly insideScripts?: readonly string[];
  run(style: string, load: Load): Promise<LoadResult>;
}

/** Starts the load in all processes at the same moment, and adds up their results. */
export const runTogether = async (
  servers: readonly RedisServer[],
  workers: readonly Runner[],
  style: string,
  load: Omit<Load, 'startAt' | 'register'>,
): Promise<Together> => {
  const run = async (check: { readonly path?: string } | undefined): Promise<Together> => {
    const before = await commandCountsOf(servers);
    const startAt = monotonicMs() + START_IN_MS;
    const results = await Promise.all(
      workers.map((worker, at) =>
        worker.run(style, {
          ...load,
          startAt,
          ...(check && { register: { ...check, id: at + 1 } }),
        }),
      ),
    );
    const { name, insideScripts = (await subjectNamed(name)).insideScripts } = workers[0]!;
    const sent = sentBetween(before, await commandCountsOf(servers), insideScripts);
    const total = (pick: (result: LoadResult) => number): number => sum(results.map(pick));
    const sections = total((result) => result.sections);
    const served = results.flatMap((result) => result.served);
    return {
      results,
      rate: (sum(served) / load.forMs) * 1_000,
      busyShare: (total(({ busyMs }) => busyMs) / load.forMs) * 100,
      jain: jain(served),
      jainOfProcesses: jain(results.map((result) => sum(result.served))),
      unserved: served.filter((times) => times === 0).length,
      longestWaitMs: Math.max(...results.map((result) => result.longestWaitMs)),
      commands: sections > 0 ? sent / sections : undefined,
      cpuUs: sections > 0 ? (total(({ cpuMs }) => cpuMs) / sections) * 1_000 : undefined,
      violations:
        total((result) => result.violations) +
        (load.shared
          ? overcrowded(
              results.flatMap(({ times }) => times),
              load.shared,
            )
          : 0),
      failures: total((result) => result.failures),
      firstFailure: results.find(({ firstFailure }) => firstFailure !== undefined)?.firstFailure,
      unfinished: total((result) => result.unfinished),
    };
  };
  if (load.shared || typeof load.keys !== 'object' || !('one' in load.keys)) return run(undefined);
  return workers.length > 1 ? withRegister((path) => run({ path })) : run({});
};
