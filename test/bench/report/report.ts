import { cpus, totalmem } from 'node:os';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { Outcome, Workload } from '../workload.js';

/** What one workload came to: plain data, as it stands in results.json. */
export interface Reported
  extends Outcome, Pick<Workload, 'name' | 'title' | 'shows' | 'doesNotShow' | 'charts'> {
  readonly seconds: number;
}

/** The machine, without anything that says whose it is. */
export interface Machine {
  readonly when: string;
  readonly node: string;
  readonly redis: string;
  readonly cpu: string;
  readonly memory: string;
  readonly system: string;
}

/** A whole run. */
export interface Report {
  readonly machine: Machine;
  /** What was typed to get it. */
  readonly command?: string;
  /** The load of the machine over 1, 5 and 15 minutes, before the run and after it. */
  readonly load?: { readonly before: readonly number[]; readonly after: readonly number[] };
  readonly quick: boolean;
  readonly rounds: number;
  readonly growthRounds: number;
  readonly cycles: number;
  /** The peers' versions, by name. */
  readonly peers: Readonly<Record<string, string>>;
  readonly workloads: readonly Reported[];
}

const GB = 1_024 ** 3;

export const machineOf = async (server: RedisServer): Promise<Machine> => {
  const version = /^(?:valkey|redis)_version:(\S+)/m.exec(await server.text('INFO', 'server'))?.[1];
  const [cpu] = cpus();
  return {
    when: `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    node: process.version,
    redis: version ?? 'unknown',
    cpu: `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / GB)} GB`,
    system: `${process.platform} ${process.arch}`,
  };
};
