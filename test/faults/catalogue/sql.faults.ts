import { setTimeout as sleep } from 'node:timers/promises';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH } from '../settings.js';
import type { Database } from '../topology/database.js';
import { fault, isDatabase, type Dose, type Fault } from './fault.js';
import { duringOutage } from './outage.js';
import { lasting, SERVER, theDatabase } from './sql-fault.js';

const kill = lasting({
  name: 'SIGKILL database',
  weight: 3,
  ms: [20, 900],
  text: 'the database is killed, and started again after',
  begin: (database) => database.kill(),
  end: (database) => database.startAgain(),
});

const restart = lasting({
  name: 'database restarts',
  weight: 2,
  ms: [0, 600],
  text: 'the database ends in order, and is started again after',
  begin: (database) => database.end(),
  end: (database) => database.startAgain(),
});

const stop = lasting({
  name: 'SIGSTOP database',
  weight: 3,
  ms: [50, 2_000],
  text: 'the database is stopped for',
  begin: (database) => database.stop(),
  end: (database) => database.goOn(),
});

const readOnly = lasting({
  name: 'read-only database',
  weight: 2,
  ms: [100, 1_500],
  text: 'the database is read-only for',
  begin: (database) => database.setReadOnly(true),
  end: (database) => database.setReadOnly(false),
});

/** Ends every connection, or every second one. */
const endConnections = async (database: Database, every: number): Promise<void> => {
  const ids = (await database.connections()).filter((_, i) => i % every === 0);
  for (const id of ids) await database.endConnection(id);
};

const full = lasting({
  name: 'connections exhausted',
  weight: 2,
  ms: [100, 1_500],
  text: 'half of the connections are ended, and further ones refused for',
  async begin(database) {
    await database.setFull(true);
    await endConnections(database, 2);
  },
  end: (database) => database.setFull(false),
});

const endAll = fault<Dose & { readonly every: number }>({
  name: 'connections killed',
  weight: 3,
  fits: isDatabase,
  choose: (random) => ({ every: random.whole(1, 2), forMs: 0 }),
  targets: () => SERVER,
  describe: ({ every }) => `${every === 1 ? 'all' : 'half of the'} connections are ended in the database`,
  async inflict(topology, { every }) {
    await duringOutage(topology, 'connections killed', AFTERMATH.outage, () =>
      endConnections(theDatabase(topology), every),
    );
  },
});

/** The server says the same as after its time-out for statements. */
const cancel = fault<Dose>({
  name: 'statements cancelled',
  weight: 2,
  fits: isDatabase,
  choose: (random) => ({ forMs: random.whole(100, 1_000) }),
  targets: () => SERVER,
  describe: ({ forMs }) => `all statements that are under way are cancelled for ${forMs} ms`,
  async inflict(topology, { forMs }) {
    const database = theDatabase(topology);
    await duringOutage(topology, 'statements cancelled', AFTERMATH.outage, async () => {
      for (const end = labNow() + forMs; labNow() < end; await sleep(5)) {
        for (const id of await database.connections()) await database.cancel(id);
      }
    });
  },
});

export const SQL_FAULTS: readonly Fault[] = [kill, restart, stop, readOnly, full, endAll, cancel];
