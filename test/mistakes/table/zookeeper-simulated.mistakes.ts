import { anotherConnection, lateReply, lostReply, serverCutOff } from '../../faults/directed/on-zookeeper.js';
import type { InLaboratory } from '../mistake.js';
import type { Edit } from '../source/edit.js';

/** A deliberate mistake in the store on ZooKeeper, which its simulation shows. */
export interface ZooKeeperSimulatedMistake {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Rules of the witness, one of which has to see it. */
  readonly rules: readonly string[];
  /** How it is played on real servers, too. */
  readonly laboratory?: InLaboratory;
}

const IN_ORDER = ['exclusion', 'tokens', 'writes'];
const NEVER = ['nobody', 'endless', 'wake-up'];

export const ZOOKEEPER_SIMULATED_MISTAKES: readonly ZooKeeperSimulatedMistake[] = [
  {
    name: 'a session is valid from the reply on, not from when its request was sent',
    edits: [
      {
        in: 'ZkConnection.receive',
        find: 'this.host.heard(request.sentAt, lastSeen);',
        replace: 'this.host.heard(this.host.runtime.now(), lastSeen);',
      },
    ],
    rules: IN_ORDER,
    laboratory: { rules: ['exclusion'], play: lateReply },
  },
  {
    name: 'a session is valid from the newest reply on, of which the leader may not know',
    edits: [{ in: 'Life.heard', find: 'timeoutMs * TOLD_PART', replace: '0' }],
    rules: IN_ORDER,
  },
  {
    name: 'a create whose reply was lost is forgotten',
    edits: [
      {
        in: 'NodeLocks.deleteAll',
        find: 'await this.namesOf(place, terms)',
        replace: '[] as string[]',
      },
    ],
    rules: ['leftovers', ...NEVER],
    laboratory: { rules: ['leftovers'], play: lostReply },
  },
  {
    name: 'an undo looks for the nodes of its owner without a sync',
    edits: [
      {
        in: 'NodeLocks.namesOf',
        find: 'const synced = session.request(sync(path), terms);',
        replace: 'const synced = Promise.resolve(sync);',
      },
    ],
    rules: ['leftovers', ...NEVER],
  },
  {
    name: 'an undo gives up while its session lives',
    edits: [
      {
        in: 'NodeLocks.leave',
        find: 'if (!within.over.aborted) throw failure;',
        replace: '',
      },
    ],
    rules: ['leftovers', ...NEVER],
  },
  {
    name: 'a close ends the session while sections hold locks',
    edits: [
      {
        in: 'ZooKeeperStore.close',
        find: 'keepsNodes: this.places.holdLocks',
        replace: 'keepsNodes: false',
      },
    ],
    rules: IN_ORDER,
  },
  {
    name: 'nodes are sorted by their whole names',
    edits: [
      {
        in: 'inOrder',
        find: 'a.number - b.number ||',
        replace: '(a.name < b.name ? -1 : Number(a.name > b.name)) ||',
      },
    ],
    rules: IN_ORDER,
  },
  {
    name: 'a reader waits for writers only, and not for exclusive locks',
    edits: [
      {
        in: 'NodeQueue.blockersOf',
        find: "kind !== 'read' && number !== node.number",
        replace: "kind === 'write' && number !== node.number",
      },
    ],
    rules: ['exclusion'],
  },
  {
    name: 'watches are not set again on the next connection',
    edits: [
      {
        in: 'ZkSession.setUp',
        find: 'await this.watches.setAgain(connection, lastSeen, until);',
        replace: '',
      },
    ],
    rules: NEVER,
    laboratory: { rules: ['waiters'], play: anotherConnection },
  },
  {
    name: 'a waiter takes its turn when any earlier node goes',
    edits: [{ in: 'NodeLocks.changed', find: 'isLast && change', replace: 'change' }],
    rules: IN_ORDER,
  },
  {
    name: 'an end of a session leaves its holds and its waiters',
    edits: [{ in: 'ZkSession.expire', find: 'life.ending.abort();', replace: '' }],
    rules: [...IN_ORDER, 'leftovers', ...NEVER],
  },
  {
    name: 'a grant counts although its session is over',
    edits: [
      {
        in: 'Contention.accept',
        find: '!over && !forced && now < hold.validUntil && !isGone',
        replace: '!over && !forced',
      },
      {
        in: 'TimeInStore.validUntil',
        find: 'Math.min(this.certainUntil, this.session.validUntil)',
        replace: 'this.certainUntil',
      },
    ],
    rules: IN_ORDER,
  },
  {
    name: 'a release deletes only the node of a hold, and not that of a waiter',
    edits: [
      {
        in: 'ZookeeperKind.leavePlace',
        find: "const isHeld = place.state === 'held';",
        replace: "const isHeld = place.state === 'held'; if (!isHeld) return NOT_HELD;",
      },
    ],
    rules: ['leftovers', ...NEVER],
  },
  {
    name: 'one permit more is granted than there are',
    edits: [{ in: 'Place.blockersIn', find: 'position - permits + 1', replace: 'position - permits' }],
    rules: ['exclusion'],
  },
  {
    name: 'a claim keeps its turn when it has its permit',
    edits: [
      {
        in: 'ZookeeperPermits.grant',
        find: 'await locks.leave(turn, session.timeLimit());',
        replace: '',
      },
    ],
    rules: ['leftovers', ...NEVER],
  },
  {
    name: 'a claim that waits for a permit does not watch the others',
    edits: [
      {
        in: 'ZookeeperPermits.change',
        find: 'locks.look(lease, undefined, true)',
        replace: 'locks.look(lease)',
      },
    ],
    rules: ['leftovers', ...NEVER],
  },
  {
    name: 'a permit whose create had no reply is created again',
    edits: [
      {
        in: 'ZookeeperPermits.waitForPermit',
        find: 'if (lease.session && lease.node === undefined) await locks.leave(lease, session.timeLimit());',
        replace: '',
      },
    ],
    rules: ['leftovers', ...NEVER],
  },
  {
    name: 'a release leaves the turn of its claim',
    edits: [{ in: 'ZookeeperPermits.leave', find: 'this.leavePlace(turn, until)', replace: 'undefined' }],
    rules: ['leftovers', ...NEVER],
  },
];

/** Mistakes that real servers show. */
export const ZOOKEEPER_MISTAKES: readonly ZooKeeperSimulatedMistake[] = [
  {
    name: 'replies count that a server gives without the leader',
    edits: [
      {
        in: 'ZkConnection.exchange',
        find: 'isLocal ? undefined : host.runtime.now()',
        replace: 'host.runtime.now()',
      },
      {
        in: 'ZkSession.keepAlive',
        find: "sync('/')",
        replace: "{ ...sync('/'), op: 4, write: (to) => void to.text('/').bool(false) }",
      },
    ],
    rules: [],
    laboratory: { rules: ['exclusion'], play: serverCutOff },
  },
];
