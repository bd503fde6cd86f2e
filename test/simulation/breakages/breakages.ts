import type { Breakage } from './breakage.js';
import { MISUSE_BREAKAGES } from './misuse.breakages.js';

export const BREAKAGES: readonly Breakage[] = [
  {
    name: 'release without a look at the owner',
    rules: ['exclusion'],
    quirks: { releaseOfAnyOwner: true },
  },
  {
    name: 'no second try once the subscription is live',
    rules: ['promptness'],
    quirks: { silentWhenLive: true },
  },
  {
    name: 'messages counted only from the reply on',
    rules: ['promptness'],
    patches: [
      {
        file: 'contend.ts',
        find: 'wakeUp(around, queue, wait, hintsBefore,',
        replace: 'wakeUp(around, queue, wait, queue.hints,',
      },
    ],
  },
  {
    name: 'no new try after the subscriber has connected again',
    rules: ['promptness'],
    quirks: { silentWhenLiveAgain: true },
  },
  {
    name: 'a renewal makes a lost hold anew',
    rules: ['foundation'],
    quirks: { extendCreates: true },
  },
  {
    name: 'a renewal shortens',
    rules: ['shortened'],
    quirks: { extendShortens: true },
  },
  {
    name: 'no undo after an acquire that was not answered',
    rules: ['leftovers'],
    patches: [
      {
        file: 'contend.ts',
        find: 'settler.settle(claim, failure, runtime.now() + claim.leaseMs);',
        replace: '{}',
      },
    ],
  },
  {
    name: 'an undo trusted on another connection',
    rules: ['leftovers'],
    quirks: { trustsEveryUndo: true },
  },
  {
    name: 'validity counted from the reply instead of the send',
    rules: ['foundation', 'exclusion'],
    patches: [
      {
        file: 'contend.ts',
        find: 'attempt, sentAt, reply);',
        replace: 'attempt, around.runtime.now(), reply);',
      },
    ],
  },
  {
    name: 'leases measured with the wall clock',
    rules: ['foundation', 'exclusion'],
    quirks: { wallClock: true },
  },
  {
    name: 'a sibling let in by reentrancy',
    rules: ['exclusion', 'lost update'],
    patches: [
      {
        file: 'gate.ts',
        find: 'if (this.occupied) return this.admission(wait, runtime);',
        replace: '',
      },
    ],
  },
  {
    name: 'a waiter dropped when its neighbour aborts',
    rules: ['promptness', 'waiting', 'leftovers'],
    patches: [
      {
        file: 'key-queue.ts',
        find: 'const abort = (): void =>\n        waiter.refuse(',
        replace: 'const abort = (): void =>\n        void this.waiters.clear() ?? waiter.refuse(',
      },
    ],
  },
  {
    name: 'a late answer to a renewal believed',
    rules: ['loss'],
    atEachStep: true,
    patches: [
      {
        file: 'lease-keeper.ts',
        find: "if (now >= hold.validUntil) return this.lose(hold, 'expired');",
        replace: '',
      },
    ],
  },
  {
    name: 'a lost holder keeps its place in the local queue',
    rules: ['promptness', 'leftovers'],
    patches: [
      {
        file: 'releasing.ts',
        find: '    // The next caller of this process need not wait for work that lost its right.\n    hold.queue.leave(false);',
        replace: '',
      },
    ],
  },
  {
    name: 'a failed release not tried again',
    rules: ['leftovers'],
    patches: [
      {
        file: 'releasing.ts',
        find: 'core.settler.settle(claim, undefined, hold.mayLastUntil, hold.keepUntil);',
        replace: '',
      },
    ],
  },
  {
    name: 'renewals without an answer forgotten when a lost hold is given back',
    rules: ['leftovers'],
    patches: [
      {
        file: 'hold.ts',
        find: 'this.mayLastUntil = Math.max(this.mayLastUntil, until);',
        replace: '',
      },
    ],
  },
  {
    name: 'a store that fails taken for a lock that is taken',
    rules: ['busy'],
    patches: [
      {
        file: 'contend.ts',
        find: "throw storeError(wait.key, failure, 'acquiring', runtime.now() - wait.startedAt);",
        replace: 'throw takenError(wait.key, runtime.now() - wait.startedAt, wait.waitMs);',
      },
    ],
  },
  {
    name: 'nobody told that a hold will end sooner',
    rules: ['promptness'],
    quirks: { silentWhenShortened: true },
  },
  {
    name: 'a deadline that does not count while other processes go first',
    rules: ['waiting'],
    patches: [
      {
        file: 'contend.ts',
        find: 'if (until === undefined || leftMs <= 0 || wait.signal?.aborted) return;',
        replace: 'if (until === undefined || wait.signal?.aborted) return;',
      },
      {
        file: 'contend.ts',
        find: 'Math.min(until - runtime.now(), leftMs)',
        replace: 'until - runtime.now()',
      },
    ],
  },
  {
    name: 'fencing tokens from a clock that steps back',
    rules: ['tokens'],
    quirks: { tokensFromClockAlone: true },
  },
  {
    name: 'a hold handed to an aborted waiter',
    rules: ['promptness', 'leftovers', 'waiting'],
    patches: [
      {
        file: 'key-queue.ts',
        find: 'const abort = (): void =>\n        waiter.refuse(',
        replace: 'const abort = (): void =>\n        reject(',
      },
    ],
  },
  {
    name: 'a turn that never ends',
    rules: ['turns'],
    patches: [{ file: 'hand-over.ts', find: ' || now >= turn.until', replace: '' }],
  },
  {
    name: 'more leases than tokens',
    rules: ['tokens'],
    patches: [{ file: 'hand-over.ts', find: 'turn.leasesLeft === 0 || ', replace: '' }],
  },
  {
    name: 'a token used twice',
    rules: ['tokens'],
    patches: [
      {
        file: 'hand-over.ts',
        find: 'if (turn.nextToken !== undefined) turn.nextToken++;',
        replace: '',
      },
    ],
  },
  ...MISUSE_BREAKAGES,
];
