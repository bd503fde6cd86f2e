import { setTimeout as sleep } from 'node:timers/promises';
import { AFTERMATH } from '../settings.js';
import type { Database } from '../topology/database.js';
import type { Topology } from '../topology/topology.js';
import type { Random } from '../../simulation/engine/random.js';
import { fault, isDatabase, type Dose, type Fault } from './fault.js';
import { duringOutage } from './outage.js';

/** Two faults of the server never act at the same time. */
const SERVER = 'database';
const targets = (): readonly string[] => [SERVER];

const theDatabase = ({ database }: Topology): Database => {
  if (!database) throw new Error('this fault is for a database');
  return database;
};

/** A fault that is begun, lasts for a while, and is ended. */
const lasting = (
  name: string,
  {
    weight,
    ms: [min, max],
    text,
    aftermathMs = AFTERMATH.outage,
  }: {
    readonly weight: number;
    readonly ms: readonly [number, number];
    readonly text: string;
    readonly aftermathMs?: number;
  },
  inflict: (database: Database, forMs: number) => Promise<void>,
): Fault =>
  fault<Dose>({
    name,
    weight,
    fits: isDatabase,
    choose: (random: Random) => ({ forMs: random.whole(min, max) }),
    targets,
    describe: ({ forMs }) => `the database ${text} ${forMs} ms`,
    inflict: (topology, { forMs }) =>
      duringOutage(topology, name, aftermathMs, () => inflict(theDatabase(topology), forMs)),
  });

const kill = lasting(
  'SIGKILL database',
  { weight: 3, ms: [20, 900], text: 'is killed, and started again after' },
  async (database, forMs) => {
    await database.kill();
    await sleep(forMs);
    await database.startAgain();
  },
);

const restart = lasting(
  'database restarts',
  { weight: 2, ms: [0, 600], text: 'is ended in order, and started again after' },
  async (database, forMs) => {
    await database.end();
    await sleep(forMs);
    await database.startAgain();
  },
);

const stop = lasting(
  'SIGSTOP database',
  { weight: 3, ms: [50, 2_000], text: 'is stopped for' },
  async (database, forMs) => {
    await database.stop();
    await sleep(forMs);
    await database.goOn();
  },
);

export const SQL_FAULTS: readonly Fault[] = [kill, restart, stop];
