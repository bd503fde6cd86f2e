import type { DirectedStage } from '../../faults/directed/directed-stage.js';
import { until } from '../../support/async.js';
import type { ObjectTask } from '../../faults/workload/worker-messages.js';
import type { Mistake } from '../mistake.js';

const GATE = 'gate-1';
const DOOR = 'door-1';

/** Works with the only permit. */
const work = (workMs: number, waitMs: number): ObjectTask => ({
  do: 'work',
  key: GATE,
  of: 1,
  permits: 1,
  waitMs,
  workMs,
});

/** Meets one other. */
const meet: ObjectTask = { do: 'meet', key: DOOR, count: 2, waitMs: 4_000 };

/** Resolves when the store has this number. */
const numberIs = async (stage: DirectedStage, key: string, number: string): Promise<void> => {
  await until(async () => (await stage.server.cli('GET', stage.finalKey(key))) === number, {
    what: `the number of ${key} is ${number}`,
  });
};

/** One works, and its permit is given back, but the answer to that is lost. */
const releaseWithoutReply = async (stage: DirectedStage): Promise<void> => {
  const given = stage.requesting(stage.one, 'give', (connection) => {
    stage.hampered(stage.one, 2_000);
    connection.swallowReplies();
  });
  await stage.startToUse(stage.one, work(20, 1_000));
  await given;
};

/** Mistakes in semaphores and latches, which nobody holds. */
export const OBJECT_MISTAKES: readonly Mistake[] = [
  {
    name: 'what had no answer is asked once more',
    edits: [
      {
        in: 'ObjectContext.request',
        find: 'this.judged(send).catch(',
        replace: 'this.judged(send).catch(() => this.judged(send)).catch(',
      },
    ],
    simulation: { rules: ['semaphore', 'latch'] },
    laboratory: { rules: ['semaphore'], play: releaseWithoutReply },
  },
  {
    name: 'permits given back that nobody took',
    edits: [
      {
        in: 'Semaphore.take',
        find: 'request: () => store.take(finalKey, permits),',
        replace:
          'request: () => store.take(finalKey, permits).catch(async (failure: unknown) => { await store.add(finalKey, permits); throw failure; }),',
      },
    ],
    simulation: { rules: ['semaphore'] },
  },
  {
    name: 'a caller that takes permits along',
    edits: [
      {
        in: 'UntilWon.run',
        find: 'if (await this.request()) return;',
        replace:
          'if (await this.request()) { const gone = this.host.reasonToStop(wait); if (gone) throw gone; return; }',
      },
    ],
    simulation: { rules: ['semaphore'], atEachStep: 'objects' },
  },
  {
    name: 'the next in order is told nothing',
    edits: [
      {
        in: 'Callers.leave',
        find: '} else if (wasFirst && this.inOrder) this.first?.sleep?.resolve();',
        replace: '} else if (wasFirst && this.inOrder) return;',
      },
    ],
    simulation: { rules: ['semaphore'], atEachStep: 'objects' },
  },
  {
    name: 'an open latch that only one is told of',
    edits: [
      {
        in: 'Callers.woken',
        find: 'else this.wakeAll();',
        replace: 'else this.first?.sleep?.resolve();',
      },
    ],
    simulation: { rules: ['latch'], atEachStep: 'objects' },
  },
  {
    name: 'permits taken without looking',
    edits: [
      {
        in: 'SEMAPHORE_TAKE',
        find: 'if not number or number < tonumber(ARGV[1]) then return 0 end',
        replace: 'if not number then return 0 end',
      },
    ],
    laboratory: {
      rules: ['semaphore'],
      async play(stage) {
        void stage.startToUse(stage.one, work(400, 1_000));
        await numberIs(stage, GATE, '0');
        await stage.startToUse(stage.two, work(20, 0));
      },
    },
  },
  {
    name: 'permits whose return nobody hears of',
    edits: [
      {
        in: 'SEMAPHORE_ADD',
        find: 'redis.call(ARGV[3], ARGV[2], whole(sum))',
        replace: '',
      },
    ],
    laboratory: {
      rules: ['semaphore'],
      async play(stage) {
        void stage.startToUse(stage.one, work(500, 1_000));
        await numberIs(stage, GATE, '0');
        void stage.startToUse(stage.two, work(20, 3_000));
        await stage.listenedTo(GATE);
      },
    },
  },
  {
    name: 'a latch that opens for the last but one',
    edits: [
      {
        in: 'LATCH_COUNT_DOWN',
        find: 'number > 1',
        replace: 'number > 2',
      },
    ],
    laboratory: {
      rules: ['latch'],
      async play(stage) {
        let isDone = false;
        void stage.startToUse(stage.one, meet).then(() => (isDone = true));
        // It has counted down, and waits for the other; or it does not wait, which is the mistake.
        await until(async () => isDone || (await stage.server.cli('GET', stage.finalKey(DOOR))) === '1', {
          what: 'the first has counted down',
        });
        void stage.startToUse(stage.two, meet);
      },
    },
  },
];
