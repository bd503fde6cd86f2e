import { setTimeout as sleep } from 'node:timers/promises';
import { AFTERMATH, SETTINGS } from '../settings.js';
import type { Topology } from '../topology/topology.js';
import { permitsKey } from '../workload/task.js';
import { fault, isDatabase, type Dose, type Fault } from './fault.js';
import { duringOutage } from './outage.js';
import { SERVER, theDatabase } from './sql-fault.js';

/** Keys that many callers want. */
const WANTED = ['hot-1', 'hot-2', 'hot-3', 'long-1', permitsKey(1), permitsKey(2), permitsKey(3)];
/** Time between two rows: a statement that wants both in the other order comes in between. */
const STEP_MS = 15;

interface OnRows extends Dose {
  readonly keys: readonly string[];
  /** Whether the rows of permits are locked before the row of their key. That is the other order. */
  readonly membersFirst: boolean;
}

const statementsFor = ({ round }: Topology, { keys, membersFirst }: OnRows): string[] =>
  keys.flatMap((key) => {
    const rows = `SELECT name FROM nest_lock WHERE name = '${SETTINGS.keyPrefix}${round}:${key}' AND member`;
    const both = [`${rows} = '' FOR UPDATE`, `${rows} > '' FOR UPDATE`];
    return membersFirst ? both.reverse() : both;
  });

/** Another transaction has rows locked. In the other order, this is a deadlock, which the server ends on one of both sides. */
const rows = fault<OnRows>({
  name: 'rows locked',
  weight: 4,
  fits: isDatabase,
  choose: (random) => ({
    keys: Array.from({ length: random.whole(1, 4) }, () => random.pick(WANTED)),
    membersFirst: random.chance(0.5),
    forMs: random.whole(20, 1_500),
  }),
  targets: () => SERVER,
  describe: ({ keys, membersFirst, forMs }) =>
    `another transaction locks the rows of ${keys.join(', ')}${membersFirst ? ', of members first,' : ''} for ${forMs} ms`,
  async inflict(topology, dose) {
    await duringOutage(topology, 'rows locked', AFTERMATH.outage, async () => {
      const transaction = await theDatabase(topology).transaction('SELECT 1');
      try {
        for (const statement of statementsFor(topology, dose)) {
          await transaction.query(statement);
          await sleep(STEP_MS);
        }
        await sleep(dose.forMs);
      } catch (error) {
        // The server may end this side of a deadlock.
        topology.scribe.note(`the other transaction has ended: ${String(error)}`);
      } finally {
        await transaction[Symbol.asyncDispose]();
      }
    });
  },
});

export const SQL_ROWS_FAULTS: readonly Fault[] = [rows];
