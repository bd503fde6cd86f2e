import { expect, it } from 'vitest';
import { DirectedStage } from '../directed/directed-stage.js';
import { createUnderWay } from '../directed/on-zookeeper.js';
import { SESSION_MS, SETTINGS } from '../settings.js';
import { ZooKeeperTopology } from '../topology/zookeeper.js';

/** The network decides which of two messages is first. */
const TRIES = 6;

it(
  'leaves no node of a create that was under way between two servers when it was undone',
  { timeout: 200_000 },
  async () => {
    const settings = { ...SETTINGS, watchdogMs: SESSION_MS };
    await using topology = await ZooKeeperTopology.start({ name: 'ZooKeeper', workers: 1, settings });
    for (let i = 1; i <= TRIES; i++) {
      const stage = new DirectedStage(topology, `try${i}`, settings);
      await createUnderWay(stage);
      const { violations } = await stage.verdict();
      expect(
        violations.map(({ text }) => text),
        `in try ${i}`,
      ).toEqual([]);
    }
  },
);
