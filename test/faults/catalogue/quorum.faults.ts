import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../simulation/engine/random.js';
import { AFTERMATH, LONGEST_LEASE_MS } from '../settings.js';
import { fault, nodesText, serverOf, type Dose, type Fault } from './fault.js';
import { duringOutage } from './outage.js';
import { withApps } from './with-apps.js';
import { MEMORY } from './restart.faults.js';

interface OnClock extends Dose {
  readonly node: number;
  readonly jumpMs: number;
}

const HOUR_MS = 3_600_000;

/** Seconds, or hours. */
const farMs = (random: Random): number =>
  random.chance(0.5) ? random.whole(2_000, 60_000) : random.whole(HOUR_MS, 5 * HOUR_MS);

const inWords = (ms: number): string => `${Math.abs(ms)} ms ${ms > 0 ? 'ahead' : 'behind'}`;

/**
 * A clock that is set while its server works: all that it keeps ends at once, or later than was meant. That alone may give
 * a key to a second holder: to the majority that the server is in, with one that the first holder has not got. Two such
 * clocks within one lease are not tried. Its tokens count until it is found out, so no server may forget them after that.
 */
const jumps = fault<OnClock>({
  name: 'clock of a node is wrong',
  weight: 3,
  fits: ({ shape, settableClock, keepsData }) => shape === 'quorum' && settableClock && keepsData,
  choose: (random, { nodes }) => ({
    node: random.whole(0, nodes - 1),
    jumpMs: random.pick([-1, 1, 1]) * farMs(random),
    forMs: random.whole(300, 3_000),
  }),
  targets: ({ node }) => [serverOf(node), MEMORY],
  describe: ({ node, jumpMs, forMs }) =>
    `the clock of n${node + 1} is ${inWords(jumpMs)} for ${forMs} ms, and then right again`,
  async inflict({ nodes, scribe }, { node, jumpMs, forMs }) {
    const set = (ms: number): void => {
      scribe.unprotected(`the clock of n${node + 1} is set by ${ms} ms`, LONGEST_LEASE_MS);
      nodes[node]!.jump(ms);
    };
    set(jumpMs);
    await sleep(forMs);
    set(-jumpMs);
    await sleep(LONGEST_LEASE_MS);
  },
});

/** It is found out before anything that it says counts: nothing of it may be felt. */
const comesBackWrong = fault<OnClock>({
  name: 'a node comes back with a wrong clock',
  weight: 3,
  fits: ({ shape, settableClock, keepsData }) => shape === 'quorum' && settableClock && !keepsData,
  choose: (random, { nodes }) => ({
    node: random.whole(0, nodes - 1),
    jumpMs: random.pick([-1, 1, 1]) * farMs(random),
    forMs: random.whole(500, 4_000),
  }),
  targets: ({ node }) => [serverOf(node), MEMORY],
  describe: ({ node, jumpMs, forMs }) =>
    `n${node + 1} is killed, comes back empty and ${inWords(jumpMs)}, and after ${forMs} ms empty and right`,
  async inflict(topology, { node: number, jumpMs, forMs }) {
    const node = topology.nodes[number]!;
    await withApps(topology, 'a node comes back with a wrong clock', 0, ({ struck }) =>
      duringOutage(topology, `${nodesText([number])} came back`, AFTERMATH.outage, async () => {
        await node.kill();
        struck();
        node.jump(jumpMs);
        await node.startAgain({ keepData: false });
        await sleep(forMs);
        await node.kill();
        node.jump(-jumpMs);
        await node.startAgain({ keepData: false });
      }),
    );
    // Who restarted empty does not count until then, and may not be the second that has forgotten.
    await sleep(2 * LONGEST_LEASE_MS);
  },
});

export const QUORUM_FAULTS: readonly Fault[] = [jumps, comesBackWrong];
