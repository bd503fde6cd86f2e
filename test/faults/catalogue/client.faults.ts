import { labNow } from '../history/lab-clock.js';
import { AFTERMATH } from '../settings.js';
import type { Role } from '../topology/seat.js';
import { connectionName } from '../workload/worker/named-clients.js';
import {
  anyNode,
  fault,
  isRedis,
  linkOf,
  namesOf,
  onNode,
  someSeats,
  type Fault,
  type OnNode,
} from './fault.js';

interface OnClients extends OnNode {
  readonly seats: readonly number[];
  readonly roles: readonly Role[];
}

const kill = fault<OnClients>({
  name: 'CLIENT KILL',
  weight: 4,
  fits: isRedis,
  choose: (random, fitness) => ({
    ...anyNode(random, fitness),
    seats: someSeats(random, fitness),
    roles: random.pick([['commands'], ['subscriber'], ['commands', 'subscriber']] as const),
    forMs: 0,
  }),
  targets: (dose) => [...onNode(dose), ...dose.seats.map(linkOf)],
  describe: ({ node, seats, roles }) =>
    `CLIENT KILL of the connections for ${roles.join(' and ')} of ${namesOf(seats)} at n${node + 1}`,
  async inflict({ nodes, seats, scribe }, { node, seats: numbers, roles }) {
    const { server } = nodes[node]!;
    const lives = numbers.map((number) => seats[number]!).filter(({ isTaken }) => isTaken);
    const from = labNow();
    for (const { life } of lives) {
      scribe.trouble(`CLIENT KILL (${roles.join(', ')})`, from, from + AFTERMATH.cut, life.name);
    }
    const names = lives.flatMap(({ life }) => roles.map((role) => connectionName(life.name, role)));
    // In a cluster the connections of a process are all called the same.
    const wanted = new Set([...names, ...lives.map(({ life }) => life.name)]);
    const clients = (await server.text('CLIENT', 'LIST')).split('\n');
    for (const line of clients) {
      const name = /(?:^| )name=(\S*)/.exec(line)?.[1] ?? '';
      const id = /(?:^| )id=(\d+)/.exec(line)?.[1];
      if (wanted.has(name) && id !== undefined) await server.cli('CLIENT', 'KILL', 'ID', id);
    }
  },
});

export const CLIENT_FAULTS: readonly Fault[] = [kill];
