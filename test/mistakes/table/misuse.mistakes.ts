import { comesToACrowd } from '../../faults/directed/crowd.js';
import { KEY } from '../../faults/directed/tasks.js';
import type { Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

const task = (steps: Task['steps'], more: Partial<Task> = {}): Task => ({
  style: 'withLock',
  keys: [KEY],
  waitMs: 3_000,
  steps,
  ...more,
});

/** Mistakes that only callers see who do what they should not. */
export const MISUSE_MISTAKES: readonly Mistake[] = [
  {
    name: 'nested callers let in after a release by hand',
    edits: [
      { in: 'LeasePart.end', find: 'this.endNested();', replace: '' },
      { in: 'enterPart', find: "if (outer.state !== 'held')", replace: 'if (false)' },
    ],
    simulation: { rules: ['entry'] },
    laboratory: {
      // The section of whoever is let in looks at its lease once more; who was inside is not told.
      rules: ['entry', 'foundation'],
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
  },
  {
    name: 'who is inside not told of a release by hand around it',
    edits: [{ in: 'SiblingQueue.close', find: 'return this.inside;', replace: 'return undefined;' }],
    simulation: { rules: ['foundation', 'exclusion'] },
  },
  {
    name: 'a nested call let into a lease whose time is over',
    edits: [
      { in: 'Acquisition.checkEntry', find: 'keeper.checkExpiry(hold);', replace: '' },
      { in: 'enterPart', find: 'host.keeper.checkExpiry(outer.hold);', replace: '' },
      { in: 'SeveralKeys.throwIfLost', find: 'this.core.keeper.checkExpiry(part.hold);', replace: '' },
      { in: 'LockManager.runUnder', find: "lease.mustBeHeld('run');", replace: '' },
    ],
    simulation: { rules: ['entry'] },
    laboratory: {
      rules: ['entry'],
      async play(stage) {
        const steps: Task['steps'] = [
          { do: 'block', ms: 500 },
          { do: 'nest', tasks: [task([])] },
        ];
        await stage.perform(stage.one, task(steps, { leaseMs: 250 }));
      },
    },
  },
  {
    name: 'a section begun without a look at the clock',
    edits: [{ in: 'LockManager.runUnder', find: "lease.mustBeHeld('run');", replace: '' }],
    simulation: { rules: ['entry'] },
  },
  {
    name: 'a nested lease that outlives its end',
    edits: [
      {
        in: 'LeasePart.state',
        find: 'return this.over ?? this.hold.state;',
        replace: 'return this.hold.state;',
      },
    ],
    simulation: { rules: ['entry'] },
    laboratory: {
      rules: ['entry'],
      async play(stage) {
        await stage.perform(stage.one, task([{ do: 'nest', tasks: [task([], { after: [{ do: 'ask' }] })] }]));
      },
    },
  },
  {
    name: 'a lease that can be ended twice',
    edits: [
      {
        in: 'LeasePart.end',
        find: 'if (!this.outer || this.left) return how;',
        replace: 'if (!this.outer) return how;',
      },
      {
        in: 'LockManager.release',
        find: 'return (lease.ending ??= this.core.awaited(released()));',
        replace: 'return (lease.ending = this.core.awaited(released()));',
      },
    ],
    simulation: { rules: ['exclusion', 'leftovers'] },
  },
  {
    name: 'an extension after the release reaches the next holder',
    edits: [
      {
        in: 'extendLease',
        find: "checkMs('extend', ms ?? null, { min: 1 }); lease.mustBeHeld('extend');",
        replace: "checkMs('extend', ms ?? null, { min: 1 }); if (lease.loss) throw lease.loss;",
      },
    ],
    simulation: { rules: ['terms'] },
    laboratory: {
      rules: ['terms'],
      async play(stage) {
        const first = task([], { after: [{ do: 'extend', ms: 2_500 }] });
        await comesToACrowd(stage, first, [task([{ do: 'pause', ms: 200 }]), task([])]);
        await stage.done();
      },
    },
  },
  {
    name: 'a long extension handed on',
    edits: [{ in: 'Hold.isSound', find: '!this.lengthened &&', replace: '' }],
    simulation: { rules: ['terms'] },
    laboratory: {
      rules: ['terms'],
      async play(stage) {
        await comesToACrowd(stage, task([{ do: 'extend', ms: 2_500 }]), [
          task([{ do: 'pause', ms: 20 }]),
          task([]),
        ]);
        await stage.done();
      },
    },
  },
  {
    name: 'a hold forced open on its way to the next caller',
    edits: [
      { in: 'OneKey.inherit', find: 'hold.heldWith(this.whenLost);', replace: '' },
      {
        in: 'Acquisition.take',
        find: '(hold) => granted(this.complete([partOf(hold, only, label)], call))',
        replace:
          '(hold) => { hold.heldWith(this.releasing.whenLost); this.core.keeper.add(hold); return granted(this.complete([partOf(hold, only, label)], call)); }',
      },
    ],
    simulation: { rules: ['dead key', 'leftovers'] },
  },
  {
    name: 'a forced unlock that does not tell the holder beside it',
    edits: [{ in: 'forceUnlock', find: "hold.lose('force-unlocked');", replace: '{}' }],
    simulation: { rules: ['foundation'] },
  },
  {
    name: 'a least time that ends with a release by hand',
    edits: [
      {
        in: 'Releasing.send',
        find: '{ keepForMs, until:',
        replace: '{ until:',
      },
    ],
    simulation: { rules: ['minimum'] },
  },
  {
    name: 'what a clock that stepped back says believed',
    edits: [{ in: 'TimeInStore.renew', find: 'Math.min(leftMs, requestedMs)', replace: 'leftMs' }],
    simulation: { rules: ['terms'] },
  },
];
