import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../simulation/engine/random.js';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH } from '../settings.js';
import type { ProxyLinks } from '../topology/proxy-link.js';
import type { Fitness, Topology } from '../topology/topology.js';
import { fault, linkOf, namesOf, nodesText, someOf, someSeats, type Dose, type Fault } from './fault.js';

/** Some of a few servers, as seen from some seats. */
interface OnPaths extends Dose {
  readonly seats: readonly number[];
  readonly servers: readonly number[];
}

const hasSeveral = ({ links }: Fitness): boolean => links > 1;
const targets = ({ seats }: OnPaths): string[] => seats.map(linkOf);

const pathsOf = ({ seats: all }: Topology, { seats, servers }: OnPaths): ProxyLinks[] =>
  seats.map((seat) => all[seat]!.linksTo(servers));

const troubled = ({ seats: all, scribe }: Topology, { seats, forMs }: OnPaths, what: string): void => {
  const from = labNow();
  for (const seat of seats.map((number) => all[number]!)) {
    if (seat.isTaken) scribe.trouble(what, from, from + forMs + AFTERMATH.outage, seat.life.name);
  }
};

/** How a network lets somebody down: it says so, or it is silent. */
type Manner = 'refused' | 'silent';

/** Some of the clients do not reach some of the servers, while others do. */
const partition = (name: string, weight: number, countOf: (random: Random, links: number) => number): Fault =>
  fault<OnPaths & { readonly manner: Manner }>({
    name,
    weight,
    fits: hasSeveral,
    choose: (random, fitness) => ({
      seats: someSeats(random, fitness),
      servers: someOf(random, countOf(random, fitness.links), fitness.links),
      manner: random.pick(['refused', 'silent'] as const),
      forMs: random.whole(300, 2_500),
    }),
    targets,
    describe: ({ seats, servers, manner, forMs }) =>
      `${namesOf(seats)} and ${nodesText(servers)} do not reach each other (${manner}), ${forMs} ms`,
    async inflict(topology, dose) {
      troubled(topology, dose, name);
      const paths = pathsOf(topology, dose);
      for (const path of paths) {
        if (dose.manner === 'silent') path.blackhole();
        else {
          path.refuse();
          path.cut();
        }
      }
      await sleep(dose.forMs);
      for (const path of paths) await path.restore();
    },
  });

const minority = partition('client cut off from a minority', 3, (random, links) =>
  random.whole(1, Math.max(1, Math.ceil(links / 2) - 1)),
);
const majority = partition('client cut off from a majority', 3, (random, links) =>
  random.whole(Math.floor(links / 2) + 1, Math.max(Math.floor(links / 2) + 1, links - 1)),
);

/** For all clients, so that it looks like a server that is busy with other things. */
const slow = fault<OnPaths & { readonly delayMs: number }>({
  name: 'a node is slow',
  weight: 3,
  fits: hasSeveral,
  choose: (random, { seats, nodes }) => ({
    seats: Array.from({ length: seats }, (_, seat) => seat),
    servers: [random.whole(0, nodes - 1)],
    delayMs: random.whole(10, 250),
    forMs: random.whole(500, 2_500),
  }),
  targets,
  describe: ({ servers, delayMs, forMs }) =>
    `everything at ${nodesText(servers)} takes ${delayMs} ms longer, ${forMs} ms`,
  async inflict(topology, dose) {
    troubled(topology, dose, 'a node is slow');
    const paths = pathsOf(topology, dose);
    for (const path of paths) path.delay(dose.delayMs);
    await sleep(dose.forMs);
    for (const path of paths) await path.restore();
  },
});

export const NODE_FAULTS: readonly Fault[] = [minority, majority, slow];
