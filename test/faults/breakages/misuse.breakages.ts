import { MISUSE_BREAKAGES as IN_CORE } from '../../simulation/breakages/misuse.breakages.js';
import type { Task } from '../workload/task.js';
import type { Breakage } from './breakage.js';
import type { Patch } from './broken-library.js';
import { comesToACrowd } from './crowd.js';
import { KEY } from './tasks.js';

/** The same mistake as in the simulation, in the whole library. */
const mistake = (name: string): { name: string; patches: Patch[] } => {
  const { patches = [] } = IN_CORE.find((breakage) => breakage.name === name)!;
  return { name, patches: patches.map((patch) => ({ ...patch, file: `core/${patch.file}` })) };
};

const task = (steps: Task['steps'], more: Partial<Task> = {}): Task => ({
  style: 'withLock',
  keys: [KEY],
  waitMs: 3_000,
  steps,
  ...more,
});

/** Mistakes that only callers see who do what they should not. */
export const MISUSE_BREAKAGES: readonly Breakage[] = [
  {
    ...mistake('nested callers let in after a release by hand'),
    // The section of whoever is let in looks at its lease once more; who was inside is not told.
    seenBy: ['entry', 'foundation'],
    async play(stage) {
      const release: Task['steps'] = [{ do: 'pause', ms: 30 }, { do: 'release' }];
      const siblings = [task([{ do: 'pause', ms: 150 }]), task([{ do: 'pause', ms: 20 }])];
      const steps: Task['steps'] = [
        { do: 'nest', tasks: siblings },
        { do: 'in-turn', steps: release },
      ];
      await stage.perform(stage.one, task([{ do: 'beside', steps }]));
    },
  },
  {
    ...mistake('a nested call let into a lease whose time is over'),
    seenBy: ['entry'],
    async play(stage) {
      const steps: Task['steps'] = [
        { do: 'block', ms: 500 },
        { do: 'nest', tasks: [task([])] },
      ];
      await stage.perform(stage.one, task(steps, { leaseMs: 250 }));
    },
  },
  {
    ...mistake('a nested lease that outlives its end'),
    seenBy: ['entry'],
    async play(stage) {
      await stage.perform(stage.one, task([{ do: 'nest', tasks: [task([], { after: [{ do: 'ask' }] })] }]));
    },
  },
  {
    ...mistake('an extension after the release reaches the next holder'),
    seenBy: ['terms'],
    async play(stage) {
      const first = task([], { after: [{ do: 'extend', ms: 2_500 }] });
      await comesToACrowd(stage, first, [task([{ do: 'pause', ms: 200 }]), task([])]);
      await stage.done();
    },
  },
  {
    ...mistake('a long extension handed on'),
    seenBy: ['terms'],
    async play(stage) {
      await comesToACrowd(stage, task([{ do: 'extend', ms: 2_500 }]), [
        task([{ do: 'pause', ms: 20 }]),
        task([]),
      ]);
      await stage.done();
    },
  },
];
