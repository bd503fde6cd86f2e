import type { DirectedStage } from '../../faults/directed/directed-stage.js';
import { KEY, holder } from '../../faults/directed/tasks.js';
import type { Task } from '../../faults/workload/task.js';
import type { ObjectTask } from '../../faults/workload/worker-messages.js';
import { until } from '../../support/async.js';
import type { LaboratoryMistake } from '../mistake.js';

const taking: Task = { style: 'acquire', keys: [KEY], waitMs: 300, steps: [] };
/** All that there is of a semaphore is one name, so it can be used while its slot moves. */
const gate: ObjectTask = { do: 'work', key: 'gate-1', of: 1, permits: 1, waitMs: 500, workMs: 0 };

const nothing = (): Promise<void> => Promise.resolve();

const move = (
  stage: DirectedStage,
  key: string,
  keysAreThere: () => Promise<unknown> = nothing,
): Promise<void> =>
  stage.topology.replicated!.moveSlot!(stage.finalKey(key), { begun: nothing, keysAreThere });

/** Deliberate mistakes in a cluster, played on real servers. */
export const CLUSTER_MISTAKES: readonly LaboratoryMistake[] = [
  {
    name: 'what a server is only getting is asked for without ASKING',
    edits: [
      {
        in: 'ClusterCommands.sendToImporter',
        find: "at.send({ command: 'asking', args: [], read: () => undefined }).catch(() => undefined);",
        replace: '',
      },
    ],
    laboratory: {
      rules: ['availability'],
      async play(stage) {
        await stage.startToUse(stage.one, gate);
        await move(stage, gate.key, () => stage.startToUse(stage.two, gate));
      },
    },
  },
  {
    name: 'what has moved is asked for where it was',
    edits: [
      {
        in: 'ClusterCommands.elsewhere',
        find: "if (redirect.kind === 'MOVED') host.moved(redirect.slot, redirect.to);",
        replace: '',
      },
    ],
    laboratory: {
      rules: ['availability'],
      async play(stage) {
        await stage.perform(stage.one, taking);
        await move(stage, KEY);
        await stage.perform(stage.one, taking);
      },
    },
  },
];

/** The same, where locks count only once replicas have them. */
export const REPLICATED_MISTAKES: readonly LaboratoryMistake[] = [
  {
    name: 'a lock counts before its replica has it',
    edits: [
      {
        in: 'ReplicatedKind.acquire',
        find: "if (reply.status === 'granted') await confirm();",
        replace: 'void confirm().catch(() => undefined);',
      },
    ],
    laboratory: {
      rules: ['exclusion'],
      async play(stage) {
        const replicated = stage.topology.replicated!;
        const group = await replicated.groupOf(stage.finalKey(KEY));
        stage.hampered(stage.one, 8_000);
        stage.hampered(stage.two, 8_000);
        const master = await replicated.masterOf(group);
        replicated.keepCopiesOut(master);
        stage.start(stage.one, holder('A', { waitMs: 100 }));
        await until(() => master.server.cli('EXISTS', stage.finalKey(KEY)), { what: 'A has the key' });
        await replicated.promote(group, 'at once');
        await replicated.openDoors();
        await stage.perform(stage.two, {
          style: 'acquire',
          keys: [KEY],
          waitMs: 4_000,
          steps: [{ do: 'pause', ms: 50 }],
        });
        stage.one.go('A ends');
      },
    },
  },
];
