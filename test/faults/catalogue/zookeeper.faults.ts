import { setTimeout as sleep } from 'node:timers/promises';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH, SESSION_MS } from '../settings.js';
import type { Ensemble } from '../topology/ensemble/ensemble.js';
import type { Seat } from '../topology/seat.js';
import type { Topology } from '../topology/topology.js';
import {
  anySeat,
  fault,
  isZooKeeper,
  linkOf,
  namesOf,
  processOf,
  someSeats,
  type Dose,
  type Fault,
} from './fault.js';
import { duringOutage } from './outage.js';

/** Two faults of the servers never act at the same time. */
const SERVERS: readonly string[] = ['ensemble'];

const theEnsemble = ({ ensemble }: Topology): Ensemble => {
  if (!ensemble) throw new Error('this fault is for ZooKeeper');
  return ensemble;
};

interface OnServers {
  readonly name: string;
  readonly weight: number;
  /** How long it lasts, in ms: at least and at most. */
  readonly ms: readonly [number, number];
  /** What it does, before its length. */
  readonly text: string;
  /** Does it. `servers` has their numbers, the leader first. It ends when all servers serve again. */
  begin(ensemble: Ensemble, servers: readonly number[], topology: Topology): Promise<void> | void;
}

/** A fault of servers that begins, lasts for a while, and is ended. */
const onServers = ({ name, weight, ms: [min, max], text, begin }: OnServers): Fault =>
  fault<Dose>({
    name,
    weight,
    fits: isZooKeeper,
    choose: (random) => ({ forMs: random.whole(min, max) }),
    targets: () => SERVERS,
    describe: ({ forMs }) => `${text} ${forMs} ms`,
    async inflict(topology, { forMs }) {
      const ensemble = theEnsemble(topology);
      await duringOutage(topology, name, AFTERMATH.outage, async () => {
        try {
          await begin(ensemble, await ensemble.leaderFirst(), topology);
          await sleep(forMs);
        } finally {
          await ensemble.served();
        }
      });
    },
  });

const ON_SERVERS = [
  onServers({
    name: 'leader killed',
    weight: 3,
    ms: [20, 2_000],
    text: 'the leader is killed, and started again after',
    begin: ({ servers }, [leader]) => servers[leader!]!.kill('SIGKILL'),
  }),
  onServers({
    name: 'leader stopped',
    weight: 3,
    ms: [100, 2_500],
    text: 'the leader is stopped for',
    begin: ({ servers }, [leader]) => servers[leader!]!.kill('SIGSTOP'),
  }),
  onServers({
    name: 'follower stopped',
    weight: 2,
    ms: [100, 2_500],
    text: 'a follower is stopped for',
    begin: ({ servers }, [, follower]) => servers[follower!]!.kill('SIGSTOP'),
  }),
  onServers({
    name: 'leader cut off from its peers',
    weight: 3,
    ms: [500, 4_500],
    text: 'the leader and the other servers do not reach each other for',
    begin: (ensemble, [leader]) => ensemble.isolate(leader!),
  }),
  onServers({
    name: 'follower cut off from its peers',
    weight: 3,
    ms: [500, 4_500],
    text: 'a follower and the other servers do not reach each other for',
    begin: (ensemble, [, follower]) => ensemble.isolate(follower!),
  }),
  onServers({
    name: 'majority killed',
    weight: 2,
    ms: [100, 1.2 * SESSION_MS],
    text: 'two servers are killed, and started again after',
    async begin({ servers }, [, ...followers]) {
      await Promise.all(followers.map((number) => servers[number]!.kill('SIGKILL')));
    },
  }),
  onServers({
    name: 'rolling restart',
    weight: 2,
    ms: [0, 200],
    text: 'one server after the other ends in order and is started again, and after',
    async begin(ensemble, servers) {
      for (const number of servers) {
        await ensemble.servers[number]!.kill('SIGTERM');
        await ensemble.served();
      }
    },
  }),
];

const fromLeader = fault<Dose & { readonly seats: readonly number[] }>({
  name: 'leader cut off from clients',
  weight: 3,
  fits: isZooKeeper,
  choose: (random, { seats }) => ({
    seats: Array.from({ length: seats }, (_, seat) => seat),
    forMs: random.whole(300, 3_000),
  }),
  targets: ({ seats }) => seats.map(linkOf),
  describe: ({ forMs }) => `the leader and its clients do not reach each other for ${forMs} ms`,
  async inflict(topology, { seats, forMs }) {
    const [leader] = await theEnsemble(topology).leaderFirst();
    const links = seats.map((seat) => topology.seats[seat]!.linksTo([leader!]));
    await duringOutage(topology, 'leader cut off from clients', AFTERMATH.outage, async () => {
      for (const link of links) link.blackhole();
      await sleep(forMs);
      for (const link of links) await link.restore();
    });
  },
});

/** So long that the server has ended the session, and not much longer. */
const BEYOND = [SESSION_MS + 300, SESSION_MS + 2_500] as const;

const troubled = ({ scribe }: Topology, seats: readonly Seat[], what: string, forMs: number): void => {
  for (const { life } of seats.filter(({ isTaken }) => isTaken))
    scribe.trouble(what, labNow(), labNow() + forMs, life.name);
};

/** What a worker holds and waits for ends, and the worker cannot hear of it. */
const cutOff = fault<Dose & { readonly seats: readonly number[]; readonly isSilent: boolean }>({
  name: 'client cut off beyond its session',
  weight: 4,
  fits: isZooKeeper,
  choose: (random, fitness) => ({
    seats: someSeats(random, fitness),
    isSilent: random.chance(0.6),
    forMs: random.whole(...BEYOND),
  }),
  targets: ({ seats }) => seats.map(linkOf),
  describe: ({ seats, isSilent, forMs }) =>
    `${namesOf(seats)} ${isSilent ? 'hears nothing from' : 'is refused by'} all servers for ${forMs} ms`,
  async inflict(topology, { seats: numbers, isSilent, forMs }) {
    const seats = numbers.map((number) => topology.seats[number]!);
    troubled(topology, seats, 'cut off beyond its session', forMs + AFTERMATH.outage);
    for (const { link } of seats) {
      if (isSilent) link.blackhole();
      else {
        link.refuse();
        link.cut();
      }
    }
    await sleep(forMs);
    for (const { link } of seats) await link.restore();
  },
});

const stopped = fault<Dose & { readonly seat: number }>({
  name: 'worker stopped beyond its session',
  weight: 3,
  fits: isZooKeeper,
  choose: (random, fitness) => ({ seat: anySeat(random, fitness), forMs: random.whole(...BEYOND) }),
  targets: ({ seat }) => [processOf(seat)],
  describe: ({ seat, forMs }) => `${processOf(seat)} is stopped for ${forMs} ms`,
  async inflict(topology, { seat: number, forMs }) {
    const seat = topology.seats[number]!;
    if (!seat.isTaken) return;
    const { process } = seat.life;
    // Its session is over: it begins a new one first.
    troubled(topology, [seat], 'stopped', forMs + AFTERMATH.standstill + AFTERMATH.outage);
    await process.kill('SIGSTOP');
    await sleep(forMs);
    await process.kill('SIGCONT');
  },
});

export const ZOOKEEPER_FAULTS: readonly Fault[] = [...ON_SERVERS, fromLeader, cutOff, stopped];
