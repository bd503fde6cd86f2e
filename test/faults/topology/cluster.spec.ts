import { expect, it } from 'vitest';
import { startCluster } from './cluster.js';

const KEY = 'a-key';

it.each([
  ['before its keys do', 'begun'],
  ['once its keys have', 'keysAreThere'],
] as const)(
  'a slot moves all the same when replicas of both sides take over %s',
  async (_, when) => {
    await using cluster = await startCluster({ name: 'cluster', workers: 0 });
    const { replicated } = cluster;
    const from = await replicated.groupOf(KEY);
    await (await replicated.masterOf(from)).server.cli('SET', KEY, 'what is in the slot');
    await replicated.settled();

    const promoteAll = async (): Promise<void> => {
      for (let group = 0; group < replicated.groups; group++) await replicated.promote(group, 'in order');
    };
    await replicated.moveSlot!(KEY, { begun: nothing, keysAreThere: nothing, [when]: promoteAll });

    await replicated.settled();
    const to = await replicated.groupOf(KEY);
    expect(to).not.toBe(from);
    const { server } = await replicated.masterOf(to);
    expect(await server.text('GET', KEY)).toBe('what is in the slot');
  },
  120_000,
);

const nothing = (): Promise<void> => Promise.resolve();
