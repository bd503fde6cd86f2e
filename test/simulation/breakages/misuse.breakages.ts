import type { Breakage } from './breakage.js';

/** Mistakes that only callers see who do what they should not. */
export const MISUSE_BREAKAGES: readonly Breakage[] = [
  {
    name: 'nested callers let in after a release by hand',
    rules: ['entry'],
    patches: [
      {
        file: 'lease-part.ts',
        find: "'lost' : 'released';\n    this.gate?.close();",
        replace: "'lost' : 'released';",
      },
      { file: 'frames.ts', find: "if (this.part.state !== 'held') {", replace: 'if (false) {' },
    ],
  },
  {
    name: 'who is inside not told of a release by hand around it',
    rules: ['foundation', 'exclusion'],
    patches: [{ file: 'gate.ts', find: 'this.inside?.endFromOutside();', replace: '' }],
  },
  {
    name: 'a nested call let into a lease whose time is over',
    rules: ['entry'],
    patches: [
      { file: 'acquisition.ts', find: 'this.core.keeper.checkExpiry(outer.hold);', replace: '' },
      { file: 'frames.ts', find: 'keeper.checkExpiry(hold);', replace: '' },
      { file: 'lock-manager.ts', find: "lease.mustBeHeld('run');\n      result", replace: 'result' },
    ],
  },
  {
    name: 'a section begun without a look at the clock',
    rules: ['entry'],
    patches: [{ file: 'lock-manager.ts', find: "lease.mustBeHeld('run');\n      result", replace: 'result' }],
  },
  {
    name: 'a nested lease that outlives its end',
    rules: ['entry'],
    patches: [
      {
        file: 'lease-part.ts',
        find: 'return this.over ?? this.hold.state;',
        replace: 'return this.hold.state;',
      },
    ],
  },
  {
    name: 'a lease that can be ended twice',
    rules: ['exclusion', 'leftovers'],
    patches: [
      {
        file: 'lease-part.ts',
        find: 'if (!this.place || this.left) return how;',
        replace: 'if (!this.place) return how;',
      },
      {
        file: 'lock-manager.ts',
        find: 'return (lease.ending ??= this.releaseParts(lease));',
        replace: 'return (lease.ending = this.releaseParts(lease));',
      },
    ],
  },
  {
    name: 'an extension after the release reaches the next holder',
    rules: ['terms'],
    patches: [
      {
        file: 'extend-lease.ts',
        find: "lease.mustBeHeld('extend');\n  for",
        replace: 'if (lease.loss) throw lease.loss;\n  for',
      },
    ],
  },
  {
    name: 'a long extension handed on',
    rules: ['terms'],
    patches: [{ file: 'hold.ts', find: '!this.extended &&', replace: '' }],
  },
  {
    name: 'a hold forced open on its way to the next caller',
    rules: ['dead key', 'leftovers'],
    patches: [
      {
        file: 'acquisition.ts',
        find: 'hold.whenLost = this.releasing.whenLost;\n      return hold;',
        replace: 'return hold;',
      },
      {
        file: 'acquisition.ts',
        find: 'return hold.then((taken) => this.complete([partOf(taken, wanted)], call));',
        replace:
          'return hold.then((taken) => { taken.whenLost = this.releasing.whenLost; this.core.keeper.add(taken); ' +
          'return this.complete([partOf(taken, wanted)], call); });',
      },
    ],
  },
  {
    name: 'a forced unlock that does not tell the holder beside it',
    rules: ['foundation'],
    patches: [{ file: 'lock-manager.ts', find: "hold.lose('force-unlocked');", replace: '{}' }],
  },
  {
    name: 'a least time that ends with a release by hand',
    rules: ['minimum'],
    patches: [
      {
        file: 'releasing.ts',
        find: 'keepForMs === undefined ? undefined : { keepForMs }',
        replace: 'undefined',
      },
    ],
  },
  {
    name: 'what a clock that stepped back says believed',
    rules: ['terms'],
    patches: [{ file: 'hold.ts', find: 'Math.min(leftMs, askedMs)', replace: 'leftMs' }],
  },
];
