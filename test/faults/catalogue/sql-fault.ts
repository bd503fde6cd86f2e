import { setTimeout as sleep } from 'node:timers/promises';
import { AFTERMATH } from '../settings.js';
import type { Database } from '../topology/database.js';
import type { Fitness, Topology } from '../topology/topology.js';
import { fault, isDatabase, type Dose, type Fault } from './fault.js';
import { duringOutage } from './outage.js';

/** Two faults of the server never act at the same time. */
export const SERVER: readonly string[] = ['database'];

/** The server of the topology. */
export const theDatabase = ({ database }: Topology): Database => {
  if (!database) throw new Error('this fault is for a database');
  return database;
};

export interface Lasting {
  readonly name: string;
  readonly weight: number;
  /** How long it lasts, in ms: at least and at most. */
  readonly ms: readonly [number, number];
  /** What it does, before its length. */
  readonly text: string;
  readonly fits?: (fitness: Fitness) => boolean;
  /** What is done first. */
  begin(database: Database): Promise<void> | void;
  /** What is done in the end, whatever has failed meanwhile. */
  end(database: Database): Promise<void> | void;
}

/** A fault of the server that begins, lasts for a while, and is ended. */
export const lasting = ({ name, weight, ms: [min, max], text, fits, begin, end }: Lasting): Fault =>
  fault<Dose>({
    name,
    weight,
    fits: (fitness) => isDatabase(fitness) && (fits?.(fitness) ?? true),
    choose: (random) => ({ forMs: random.whole(min, max) }),
    targets: () => SERVER,
    describe: ({ forMs }) => `${text} ${forMs} ms`,
    async inflict(topology, { forMs }) {
      const database = theDatabase(topology);
      await duringOutage(topology, name, AFTERMATH.outage, async () => {
        try {
          await begin(database);
          await sleep(forMs);
        } finally {
          await end(database);
        }
      });
    },
  });
