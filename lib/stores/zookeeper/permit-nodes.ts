import type { LockNode, NodeQueue } from './lock-nodes.js';
import type { RequestTerms } from './zk-session.js';

const LEASES = 'leases';
const TURNS = 'locks';

/** Returns the path of the permits of a key. The names are Curator's. */
export const leasesIn = (path: string): string => `${path}/${LEASES}`;

/** Returns the path of the mutex that a claim has while it waits for a permit. */
export const turnsIn = (path: string): string => `${path}/${TURNS}`;

/** Whether a node in the path of a key is one of permits. */
export const isOfPermits = (name: string): boolean => name === LEASES || name === TURNS;

/** Lists the queue of a path. */
interface Queues {
  queueOf(path: string, terms?: RequestTerms): Promise<NodeQueue>;
}

/** The nodes of a key. */
export interface KeyNodes {
  /** Where the nodes of the holders are. */
  readonly path: string;
  readonly holders: readonly LockNode[];
  readonly waiting: readonly LockNode[];
}

/** Lists the nodes of a key, of a lock or of permits. */
export const nodesOf = async (locks: Queues, path: string, terms?: RequestTerms): Promise<KeyNodes> => {
  const { stranger, holders, waiting } = await locks.queueOf(path, terms);
  if (stranger !== undefined && isOfPermits(stranger)) return permitsIn(locks, path, terms);
  return { path, holders, waiting };
};

/** Lists the nodes of permits. */
export const permitsIn = async (locks: Queues, path: string, terms?: RequestTerms): Promise<KeyNodes> => {
  const leases = leasesIn(path);
  const lists = [locks.queueOf(leases, terms), locks.queueOf(turnsIn(path), terms)] as const;
  const [permits, turns] = await Promise.all(lists);
  // The first one that waits has a node among the permits already. Of Java it has another name.
  const first = turns.nodes[0]?.owner;
  const holders = permits.nodes.filter(({ owner }) => owner !== first);
  return { path: leases, holders, waiting: turns.nodes };
};
