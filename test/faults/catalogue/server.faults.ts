import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/loopback.js';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH, QUEUES, LONGEST_LEASE_MS, SETTINGS } from '../settings.js';
import {
  anyNode,
  anySeat,
  fault,
  isRedis,
  isSingle,
  isIndependent,
  linkOf,
  onNode,
  type Fault,
  type OnNode,
} from './fault.js';
import { duringOutage } from './outage.js';
import { withApps } from './with-apps.js';
import { mayLoseData, RESTART_FAULTS } from './restart.faults.js';

/** What Redis did shortly before its clock is set may be told by a clock that nobody knew well. */
const CLOCK_UNCERTAIN_MS = 250;

/** How long a place in line stands that nobody keeps. */
const ENTRY_LIVES_MS = 5_000;

const stop = fault<OnNode>({
  name: 'SIGSTOP Redis',
  weight: 2,
  fits: isRedis,
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: random.whole(50, 2_000) }),
  targets: onNode,
  describe: ({ node, forMs }) => `n${node + 1} is stopped for ${forMs} ms`,
  async inflict(topology, { node, group, forMs }) {
    const { server } = topology.nodes[node]!;
    await withApps(topology, 'SIGSTOP Redis', group, ({ struck }) =>
      duringOutage(topology, 'Redis is stopped', AFTERMATH.outage, async () => {
        await server.kill('SIGSTOP');
        struck();
        await sleep(forMs);
        await server.kill('SIGCONT');
      }),
    );
  },
});

const flush = fault<OnNode>({
  name: 'FLUSHALL',
  weight: 1,
  fits: (fitness) => isSingle(fitness) && mayLoseData(fitness),
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: 0 }),
  targets: onNode,
  describe: () => 'FLUSHALL',
  async inflict(topology, { node }) {
    topology.scribe.unprotected('FLUSHALL', LONGEST_LEASE_MS + 100);
    // Waiters are not told, and look for themselves when the leases they know of are over.
    topology.scribe.trouble('nobody is told of FLUSHALL', labNow(), labNow() + LONGEST_LEASE_MS);
    await topology.nodes[node]!.server.cli('FLUSHALL');
  },
});

const pause = fault<OnNode & { readonly what: 'ALL' | 'WRITE' }>({
  name: 'CLIENT PAUSE',
  weight: 2,
  fits: isRedis,
  choose: (random, fitness) => ({
    ...anyNode(random, fitness),
    what: random.pick(['ALL', 'WRITE'] as const),
    forMs: random.whole(50, 1_500),
  }),
  targets: onNode,
  describe: ({ node, what, forMs }) => `CLIENT PAUSE ${forMs} ${what} at n${node + 1}`,
  async inflict(topology, { node, what, forMs }) {
    await duringOutage(topology, 'CLIENT PAUSE', AFTERMATH.outage, async () => {
      await topology.nodes[node]!.server.cli('CLIENT', 'PAUSE', forMs, what);
      await sleep(forMs);
    });
  },
});

/** Nobody may feel this at all. */
const scriptFlush = fault<OnNode>({
  name: 'SCRIPT FLUSH',
  weight: 1,
  fits: isRedis,
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: 0 }),
  targets: onNode,
  describe: () => 'SCRIPT FLUSH',
  async inflict({ nodes, scribe }, { node }) {
    scribe.note('SCRIPT FLUSH');
    await nodes[node]!.server.cli('SCRIPT', 'FLUSH');
  },
});

const fullMemory = fault<OnNode>({
  name: 'maxmemory',
  weight: 2,
  fits: isRedis,
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: random.whole(100, 2_000) }),
  targets: onNode,
  describe: ({ node, forMs }) => `the memory of n${node + 1} is full (noeviction) for ${forMs} ms`,
  async inflict(topology, { node, forMs }) {
    const { server } = topology.nodes[node]!;
    await duringOutage(topology, 'memory is full', AFTERMATH.cut, async () => {
      await server.cli('CONFIG', 'SET', 'maxmemory', 1);
      await sleep(forMs);
      await server.cli('CONFIG', 'SET', 'maxmemory', 0);
    });
  },
});

const readOnly = fault<OnNode>({
  name: 'READONLY',
  weight: 2,
  fits: isIndependent,
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: random.whole(100, 2_000) }),
  targets: onNode,
  describe: ({ node, forMs }) => `n${node + 1} is a replica of nobody for ${forMs} ms`,
  async inflict(topology, { node, forMs }) {
    const { server } = topology.nodes[node]!;
    await duringOutage(topology, 'READONLY', AFTERMATH.outage, async () => {
      await server.cli('REPLICAOF', '127.0.0.1', await freePort());
      await sleep(forMs);
      await server.cli('REPLICAOF', 'NO', 'ONE');
    });
  },
});

const clockJump = fault<OnNode & { readonly jumpMs: number }>({
  name: 'clock of Redis jumps',
  weight: 6,
  fits: (fitness) => isSingle(fitness) && fitness.settableClock,
  choose: (random, fitness) => ({
    ...anyNode(random, fitness),
    // Forward all leases end at once. Back they last longer, as their holders then know.
    jumpMs: random.chance(0.6) ? random.whole(2_000, 60_000) : -random.whole(500, 1_500),
    forMs: 100,
  }),
  targets: onNode,
  describe: ({ jumpMs }) => `the clock of Redis is set by ${jumpMs} ms`,
  async inflict(topology, { node, jumpMs, forMs }) {
    const longest = LONGEST_LEASE_MS + 1_500;
    // Of a server that stands still it is not known when its clock was set.
    await topology.nodes[node]!.server.cli('PING');
    topology.scribe.unprotected(`the clock of Redis is set by ${jumpMs} ms`, longest, CLOCK_UNCERTAIN_MS);
    topology.scribe.trouble('leases end at other times', labNow(), labNow() + longest);
    topology.nodes[node]!.jump(jumpMs);
    await sleep(forMs);
  },
});

/** The lines as they were once, while all that is held is as it is: owners are back that their processes have forgotten. */
const oldQueues = fault<OnNode>({
  name: 'lines of the past',
  weight: 2,
  fits: isSingle,
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: random.whole(30, 1_500) }),
  targets: onNode,
  describe: ({ forMs }) => `all lines are again as they were ${forMs} ms ago`,
  async inflict(topology, { node, forMs }) {
    const { server } = topology.nodes[node]!;
    const queues = (await server.cli('KEYS', `${QUEUES}*`)) as string[];
    const past = (queue: string): string => `of the past: ${queue}`;
    for (const queue of queues) await server.cli('COPY', queue, past(queue));
    await sleep(forMs);
    await duringOutage(topology, 'lines of the past', AFTERMATH.lostGrant, async () => {
      const at = labNow();
      topology.scribe.write({ type: 'old lines', at, until: at + forMs + ENTRY_LIVES_MS });
      for (const queue of queues) {
        await server.cli('COPY', past(queue), queue, 'REPLACE');
        await server.cli('DEL', past(queue));
      }
    });
  },
});

/** The Redis user loses the right to the wait queues for a while. Calls fail until it is back. */
const noRights = fault<OnNode & { readonly seat: number }>({
  name: 'no rights for lines',
  weight: 2,
  fits: isSingle,
  choose: (random, fitness) => ({
    ...anyNode(random, fitness),
    seat: anySeat(random, fitness),
    forMs: random.whole(50, 1_500),
  }),
  targets: (dose) => [...onNode(dose), linkOf(dose.seat)],
  describe: ({ seat, forMs }) =>
    `nobody may use wait queues for ${forMs} ms, and then the connections of w${seat + 1} are reset`,
  async inflict(topology, { node, seat, forMs }) {
    const { server } = topology.nodes[node]!;
    const { keyPrefix } = SETTINGS;
    const others = [`~${keyPrefix}*`, `~{${keyPrefix}*`, '~nest_redis_lock:fence:{*'];
    await duringOutage(topology, 'no rights for lines', AFTERMATH.lostGrant, async () => {
      await server.cli('ACL', 'SETUSER', 'default', 'resetkeys', ...others);
      await sleep(forMs);
      await server.cli('ACL', 'SETUSER', 'default', 'allkeys');
      topology.seats[seat]!.link.cut();
    });
  },
});

export const SERVER_FAULTS: readonly Fault[] = [
  stop,
  ...RESTART_FAULTS,
  flush,
  pause,
  scriptFlush,
  fullMemory,
  readOnly,
  oldQueues,
  noRights,
  clockJump,
];
