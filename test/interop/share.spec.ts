import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Had } from '../support/java/contest.js';
import type { Redisson } from '../support/redisson/redisson.js';
import { javaContends, nodeContends, servedTo, Sides, unserved, type Contender } from './sides.js';

const CALLERS = 8;
const SLICE_MS = 5_000;
/** Slices of all contests take turns, and medians count: what else a machine does must not decide. */
const ROUNDS = 3;

interface Slice {
  /** What the first side had of all. */
  readonly share: number;
  readonly perSecond: number;
  readonly unserved: readonly [first: number, second: number];
}

const slice = async (first: Promise<readonly Had[]>, second: Promise<readonly Had[]>): Promise<Slice> => {
  const [one, other] = await Promise.all([first, second]);
  const served = servedTo(one) + servedTo(other);
  return {
    share: servedTo(one) / served,
    perSecond: (served * 1_000) / SLICE_MS,
    unserved: [unserved(one), unserved(other)],
  };
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const percent = (share: number): string => `${Math.round(share * 100)} %`;

describe('a lock that Java and Node both want', () => {
  let sides: Sides;
  let java: readonly [Redisson, Redisson];
  let processes: readonly Contender[];

  beforeAll(async () => {
    sides = await Sides.start();
    java = [await sides.java(), await sides.java()];
    processes = [await sides.node(), await sides.node()];
    // The first locks of a JVM take their time.
    const warmUp = { key: 'warm-up', callers: CALLERS, workMs: 0, forMs: 2_000 };
    await Promise.all(java.map((one) => javaContends(one, warmUp)));
  });
  afterAll(() => sides[Symbol.asyncDispose]());

  // Two JVMs with the same number of threads are the same, so each of them has half in the long run, although seldom in
  // a short one. Half of that, or twice, is a quarter of all or three quarters.
  it.each([1, 2, 20])(
    `is shared as two JVMs share it within a factor of two, with %i ms of work, and all callers are served`,
    async (workMs) => {
      const contest = { key: `order-${workMs}`, callers: CALLERS, workMs, forMs: SLICE_MS };
      const rivals = {
        'a second JVM': () => javaContends(java[1], contest),
        'one Node process': () => nodeContends(processes.slice(0, 1), contest),
        'two Node processes': () => nodeContends(processes, contest),
      };
      const names = Object.keys(rivals) as (keyof typeof rivals)[];
      const slices = new Map(names.map((name): [string, Slice[]] => [name, []]));
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const name of names) {
          slices.get(name)!.push(await slice(javaContends(java[0], contest), rivals[name]()));
        }
      }
      const starved = (name: string, side: 0 | 1): number =>
        sum(slices.get(name)!.map((one) => one.unserved[side]));
      const lines = names.map((name) => {
        const shares = slices.get(name)!.map(({ share }) => share);
        const perSecond = median(slices.get(name)!.map((one) => one.perSecond));
        return `${workMs} ms, a JVM beside ${name}: it has ${percent(median(shares))} (${shares.map(percent).join(', ')}) of ${Math.round(perSecond)} each second; not once in ${SLICE_MS} ms: ${starved(name, 0)} there, ${starved(name, 1)} here`;
      });
      console.log(lines.join('\n'));

      const atMost = starved('a second JVM', 0) + starved('a second JVM', 1);
      for (const name of ['one Node process', 'two Node processes']) {
        const share = median(slices.get(name)!.map((one) => one.share));
        expect(share, `the share of Java beside ${name}`).toBeGreaterThanOrEqual(0.25);
        expect(share, `the share of Java beside ${name}`).toBeLessThanOrEqual(0.75);
        expect(starved(name, 1), `callers of ${name} left out`).toBe(0);
        expect(starved(name, 0), `threads left out beside ${name}`).toBeLessThanOrEqual(atMost);
      }
    },
    10 * ROUNDS * SLICE_MS,
  );
});
