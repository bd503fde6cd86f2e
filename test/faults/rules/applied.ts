import type { EventType } from '../../checker/history.js';
import type { Shape } from '../topology/topology.js';

/** A rule, where it applies, and what it needs to be in a history: without that it would say nothing. */
export interface Applied {
  readonly rule: string;
  readonly on: readonly Shape[];
  readonly needs: readonly EventType[];
}

const EVERYWHERE: readonly Shape[] = ['one', 'quorum', 'sentinel', 'cluster', 'database', 'zookeeper'];
/** A quorum and ZooKeeper refuse permits. */
const WITH_PERMITS: readonly Shape[] = ['one', 'sentinel', 'cluster', 'database'];
/** A quorum, a database and ZooKeeper refuse fair locks, semaphores and latches. */
const ALL_KINDS: readonly Shape[] = ['one', 'sentinel', 'cluster'];
/**
 * Rules that go by what the store did with each hold, which `hold` and `free` tell. They are written down from the commands of
 * a server that is the only one. Of several there is no one history: what a majority has is in none of them, and what a
 * master had that has failed is not what its successor has. There is judged what callers can see.
 */
const WATCHED: readonly Shape[] = ['one'];

/** Which rules of the checker and of the laboratory a history is judged by. A test looks that what they need is there. */
export const APPLIED: readonly Applied[] = [
  // What callers believe, and what becomes of it at the register.
  { rule: 'exclusion', on: EVERYWHERE, needs: ['believes', 'granted', 'ended'] },
  { rule: 'tokens', on: EVERYWHERE, needs: ['believes', 'granted'] },
  { rule: 'stale write', on: EVERYWHERE, needs: ['register'] },
  { rule: 'lost update', on: EVERYWHERE, needs: ['register'] },
  { rule: 'entry', on: EVERYWHERE, needs: ['granted', 'claims', 'ended'] },
  { rule: 'terms', on: EVERYWHERE, needs: ['believes', 'call'] },
  { rule: 'loss', on: EVERYWHERE, needs: ['believes', 'announced', 'request'] },
  { rule: 'shortened', on: EVERYWHERE, needs: ['believes', 'request'] },
  { rule: 'limit', on: WITH_PERMITS, needs: ['believes'] },
  // How long they wait, and what for.
  { rule: 'waiting', on: EVERYWHERE, needs: ['call', 'refused', 'request', 'reply'] },
  // Elsewhere promptness, or nothing but the leases, says it.
  { rule: 'waiters', on: ['zookeeper'], needs: ['call', 'refused', 'believes'] },
  { rule: 'semaphore', on: ALL_KINDS, needs: ['uses', 'used'] },
  { rule: 'latch', on: ALL_KINDS, needs: ['uses', 'used'] },
  // What is left, and whether all is well again.
  { rule: 'errors', on: EVERYWHERE, needs: ['refused', 'result'] },
  { rule: 'leftovers', on: EVERYWHERE, needs: ['usage'] },
  { rule: 'recovery', on: EVERYWHERE, needs: ['call', 'trouble'] },
  // On one server every key is seen to be given out again.
  { rule: 'dead key', on: ['quorum', 'sentinel', 'cluster', 'database', 'zookeeper'], needs: ['call'] },
  { rule: 'failover', on: ['quorum', 'sentinel', 'cluster'], needs: ['failover', 'served'] },
  { rule: 'laboratory', on: EVERYWHERE, needs: [] },
  // Of schedules by hand, in which slots move and nothing else is done.
  { rule: 'availability', on: ['cluster'], needs: ['call', 'refused'] },
  // What the store did.
  { rule: 'foundation', on: WATCHED, needs: ['hold', 'free'] },
  { rule: 'minimum', on: WATCHED, needs: ['hold', 'free'] },
  { rule: 'hand-off batch', on: WATCHED, needs: ['hold', 'free'] },
  { rule: 'busy', on: WATCHED, needs: ['hold', 'free'] },
  { rule: 'promptness', on: WATCHED, needs: ['hold', 'free'] },
  { rule: 'overtaking', on: WATCHED, needs: ['hold', 'free'] },
  { rule: 'ghosts', on: WATCHED, needs: ['hold', 'free'] },
];

const byRule = new Map(APPLIED.map((one) => [one.rule, one]));

/** Whether what a rule has found counts there. A rule that the table does not know is a mistake of the table. */
export const applies = (rule: string, shape: Shape): boolean => {
  const applied = byRule.get(rule);
  if (!applied) throw new Error(`nobody says on which topologies the rule "${rule}" applies`);
  return applied.on.includes(shape);
};
