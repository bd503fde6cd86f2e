import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Curator } from '../../support/curator/curator.js';
import { nodeWorks } from './contest.js';
import { CuratorSides, participants } from './sides.js';

const PATIENCE_MS = 5_000;
const WORK_MS = 4_000;

let sides: CuratorSides;
let java: Curator;

beforeAll(async () => {
  sides = await CuratorSides.start();
  java = await sides.java();
});
afterAll(() => sides[Symbol.asyncDispose]());

it('of three workers of Node and two of Java, two get in, and three give up and leave nothing', async () => {
  const name = '/demo/five-workers';
  const how = { key: name, waitMs: PATIENCE_MS, workMs: WORK_MS };
  const nodes = [1, 2, 3].map(() => sides.node());
  await Promise.all(nodes.map(({ locks }) => locks.ping()));
  const [inJava, ...inNode] = await Promise.all([
    java.send('demo', { name, workers: 2, waitMs: PATIENCE_MS, workMs: WORK_MS }),
    ...nodes.map(({ locks }) => nodeWorks(locks, how)),
  ]);
  const entered = inJava.entered + inNode.filter((outcome) => outcome === 'released').length;
  const gaveUp = inJava.gaveUp + inNode.filter((outcome) => outcome === 'gave up').length;
  expect({ entered, gaveUp }).toEqual({ entered: 2, gaveUp: 3 });
  expect(await participants(java, { name, count: 0 })).toEqual([]);
  // Notes of processes stay until their session ends.
  expect(await sides.server.command('dump')).not.toMatch(/^\t\/(?!.*%nest-redis-lock\/)/m);
  expect(nodes.flatMap(({ lost }) => lost)).toEqual([]);
});
