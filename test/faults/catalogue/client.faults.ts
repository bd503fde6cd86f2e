import { labNow } from '../history/lab-clock.js';
import { AFTERMATH } from '../settings.js';
import type { Role } from '../topology/seat.js';
import { connectionName } from '../workload/worker/named-clients.js';
import { fault, lineOf, namesOf, SERVER, someSeats, type Dose, type Fault } from './fault.js';

interface OnClients extends Dose {
  readonly node: number;
  readonly seats: readonly number[];
  readonly roles: readonly Role[];
}

const kill = fault<OnClients>({
  name: 'CLIENT KILL',
  weight: 4,
  fits: () => true,
  choose: (random, fitness) => ({
    node: 0,
    seats: someSeats(random, fitness),
    roles: random.pick([['commands'], ['subscriber'], ['commands', 'subscriber']] as const),
    forMs: 0,
  }),
  targets: ({ seats }) => [SERVER, ...seats.map(lineOf)],
  describe: ({ seats, roles }) =>
    `CLIENT KILL of the connections for ${roles.join(' and ')} of ${namesOf(seats)}`,
  async inflict({ nodes, seats, scribe }, { node, seats: numbers, roles }) {
    const { server } = nodes[node]!;
    const lives = numbers.map((number) => seats[number]!).filter(({ isTaken }) => isTaken);
    const from = labNow();
    for (const { life } of lives) {
      scribe.trouble(`CLIENT KILL (${roles.join(', ')})`, from, from + AFTERMATH.cut, life.name);
    }
    const wanted = new Set(lives.flatMap(({ life }) => roles.map((role) => connectionName(life.name, role))));
    const clients = (await server.text('CLIENT', 'LIST')).split('\n');
    for (const line of clients) {
      const name = /(?:^| )name=(\S*)/.exec(line)?.[1] ?? '';
      const id = /(?:^| )id=(\d+)/.exec(line)?.[1];
      if (wanted.has(name) && id !== undefined) await server.cli('CLIENT', 'KILL', 'ID', id);
    }
  },
});

export const CLIENT_FAULTS: readonly Fault[] = [kill];
