import { setTimeout as sleep } from 'node:timers/promises';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH, LONGEST_LEASE_MS } from '../settings.js';
import type { FaultyDisk } from '../topology/database.js';
import type { Topology } from '../topology/topology.js';
import { fault, isDatabase, type Dose, type Fault } from './fault.js';
import { duringOutage } from './outage.js';
import { lasting, SERVER, theDatabase } from './sql-fault.js';

const diskOf = (topology: Topology): FaultyDisk => {
  const { disk } = theDatabase(topology);
  if (!disk) throw new Error('the disk of this database has no faults');
  return disk;
};

const slow = fault<Dose & { readonly flushMs: number }>({
  name: 'slow flush',
  weight: 3,
  fits: (fitness) => isDatabase(fitness) && fitness.faultyDisk === true,
  choose: (random) => ({ flushMs: random.whole(10, 400), forMs: random.whole(200, 2_000) }),
  targets: () => SERVER,
  describe: ({ flushMs, forMs }) => `each flush of the database takes ${flushMs} ms longer, ${forMs} ms`,
  async inflict(topology, { flushMs, forMs }) {
    const disk = diskOf(topology);
    await duringOutage(topology, 'slow flush', AFTERMATH.outage + flushMs, async () => {
      disk.slow(flushMs);
      await sleep(forMs);
      disk.mend();
    });
  },
});

/** The server may wait, refuse statements, or end. */
const full = lasting({
  name: 'disk full',
  weight: 2,
  ms: [50, 1_000],
  text: 'no space is left on the disk of the database for',
  fits: ({ faultyDisk }) => faultyDisk === true,
  begin: (database) => database.disk?.fill(),
  async end(database) {
    database.disk?.mend();
    await database.served();
  },
});

const clock = fault<Dose & { readonly jumpMs: number }>({
  name: 'clock of the database jumps',
  weight: 6,
  fits: (fitness) => isDatabase(fitness) && fitness.settableClock,
  choose: (random) => ({
    // Forward all leases end at once. Back they last longer.
    jumpMs: random.chance(0.6) ? random.whole(2_000, 60_000) : -random.whole(500, 1_500),
    forMs: 100,
  }),
  targets: () => SERVER,
  describe: ({ jumpMs }) => `the clock of the database is set by ${jumpMs} ms`,
  async inflict(topology, { jumpMs, forMs }) {
    const database = theDatabase(topology);
    const longest = LONGEST_LEASE_MS + Math.max(0, -jumpMs);
    // Of a server that stands still it is not known when its clock was set.
    await database.query('SELECT 1');
    topology.scribe.unprotected(`the clock of the database is set by ${jumpMs} ms`, longest);
    topology.scribe.trouble('leases end at other times', labNow(), labNow() + longest);
    database.jump(jumpMs);
    await sleep(forMs);
  },
});

export const SQL_DISK_FAULTS: readonly Fault[] = [slow, full, clock];
