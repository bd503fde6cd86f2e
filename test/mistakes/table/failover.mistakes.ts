import type { LaboratoryMistake } from '../mistake.js';

/** Deliberate mistakes that keep apps from a server that took over, in a cluster. */
export const CLUSTER_FAILOVER_MISTAKES: readonly LaboratoryMistake[] = [
  {
    name: 'a request that finds no connection leads to no look at the slots',
    edits: [{ in: 'RedisConnection.ready', find: "this.onDown('needed');", replace: '' }],
    laboratory: {
      rules: ['failover'],
      async play(stage) {
        const { nodes, replicated } = stage.topology;
        const master = await replicated!.masterOf(0);
        const replica = nodes.find((node, i) => i % replicated!.groups === 0 && node !== master)!;
        await stage.failover('a master is killed', async ({ recovered }) => {
          await master.kill();
          await replica.server.cli('CLUSTER', 'FAILOVER', 'TAKEOVER');
          await recovered();
          await replicated!.startAgain(master);
        });
      },
    },
  },
];

/** The same behind Sentinel. */
export const SENTINEL_FAILOVER_MISTAKES: readonly LaboratoryMistake[] = [
  {
    name: 'a new master that the sentinels announce is ignored',
    edits: [
      {
        in: 'SentinelListener.notified',
        find: 'this.reports.master({ host, port: Number(port) }, true);',
        replace: '',
      },
    ],
    laboratory: {
      rules: ['failover'],
      play: (stage) => stage.failover('promotion', () => stage.topology.replicated!.promote(0, 'in order')),
    },
  },
];
