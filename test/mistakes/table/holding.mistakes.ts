import { setTimeout as sleep } from 'node:timers/promises';
import { holder, KEY } from '../../faults/directed/tasks.js';
import { labNow } from '../../faults/history/lab-clock.js';
import type { Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

/** Mistakes in keeping a lease and in ending it. */
export const HOLDING_MISTAKES: readonly Mistake[] = [
  {
    name: 'release without a look at the owner',
    edits: [
      {
        in: 'QUEUE_RELEASE',
        find: "redis.call('hdel', hold, me) == 0",
        replace: "redis.call('del', hold) == 0",
      },
      {
        in: 'QUEUE_RELEASE',
        find: "  held = redis.pcall('hexists', hold, me)",
        replace: '  held = 1',
      },
    ],
    simulation: { rules: ['exclusion'] },
    laboratory: {
      rules: ['exclusion'],
      async play(stage) {
        stage.start(stage.one, holder('A', { leaseMs: 300 }));
        await stage.one.notified('A has it');
        stage.start(stage.two, holder('B'));
        await stage.two.notified('B has it');
        stage.start(stage.one, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 1_500,
          steps: [{ do: 'pause', ms: 20 }],
        });
        stage.one.go('A ends');
        await sleep(250);
        stage.two.go('B ends');
      },
    },
  },
  {
    name: 'a release that tells nobody',
    edits: [
      {
        in: 'QUEUE_RELEASE',
        find: "redis.call(ARGV[2], ${CHANNEL}, '0')",
        replace: '0',
      },
      {
        in: 'QUEUE_RELEASE',
        find: 'if #found.entries > 0 and window == 0 then',
        replace: 'if false then',
      },
    ],
    simulation: { rules: ['promptness'] },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, holder('A', { leaseMs: 5_000 }));
        await stage.one.notified('A has it');
        stage.start(stage.two, { style: 'withLock', keys: [KEY], waitMs: 1_500, steps: [] });
        await stage.listenedTo(KEY);
        await sleep(100);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'a renewal makes a lost hold anew',
    edits: [
      {
        in: 'EXCLUSIVE_EXTEND',
        find: 'replies[i] = -1',
        replace:
          "redis.call('hset', KEYS[i], ARGV[2 * i - 1], 1) redis.call('pexpire', KEYS[i], ARGV[2 * i]) replies[i] = tonumber(ARGV[2 * i])",
      },
    ],
    laboratory: {
      rules: ['exclusion', 'foundation'],
      async play(stage) {
        stage.start(stage.one, holder('A'));
        await stage.one.notified('A has it');
        const oldLeaseMs = 1_600;
        const key = stage.finalKey(KEY);
        const at = labNow();
        stage.topology.scribe.write({
          type: 'unprotected',
          at,
          until: at + oldLeaseMs,
          key,
          why: 'deleted by hand',
        });
        await stage.server.cli('DEL', key);
        stage.start(stage.two, holder('B'));
        await stage.two.notified('B has it');
        await sleep(oldLeaseMs + 300);
        stage.one.go('A ends');
        stage.two.go('B ends');
      },
    },
  },
  {
    name: 'a renewal shortens',
    edits: [{ in: 'EXCLUSIVE_EXTEND', find: 'if left < lease then', replace: 'if true then' }],
    simulation: { rules: ['shortened'] },
    laboratory: {
      rules: ['shortened'],
      async play(stage) {
        const steps: Task['steps'] = [
          { do: 'extend', ms: 4_000 },
          { do: 'pause', ms: 900 },
        ];
        stage.start(stage.one, { style: 'withLock', keys: [KEY], waitMs: 0, steps });
        await stage.done();
      },
    },
  },
  {
    name: 'validity counted from the reply instead of the send',
    edits: [
      {
        in: 'Contention.win',
        find: 'this.accept(reply, reply.since ?? this.sentAt,',
        replace: 'this.accept(reply, core.runtime.now(),',
      },
    ],
    simulation: { rules: ['foundation', 'exclusion'] },
    laboratory: {
      rules: ['exclusion', 'foundation'],
      async play(stage) {
        stage.hampered(stage.one, 2_000);
        stage.connection(stage.one, 'commands').delay(300, ['toClient']);
        const requested = stage.requesting(stage.one, 'acquire');
        stage.start(stage.one, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 1_000,
          leaseMs: 500,
          steps: [{ do: 'pause', ms: 600 }],
        });
        await requested;
        stage.start(stage.two, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 2_000,
          steps: [{ do: 'pause', ms: 300 }],
        });
        await stage.done();
      },
    },
  },
  {
    name: 'leases measured with the wall clock',
    edits: [{ in: 'systemRuntime', find: 'new SuspendAwareClock()', replace: '{ now: () => Date.now() }' }],
    simulation: { rules: ['foundation', 'exclusion'], quirks: { wallClock: true } },
    laboratory: {
      rules: ['exclusion', 'foundation', 'loss'],
      async play(stage) {
        stage.start(stage.one, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 0,
          leaseMs: 400,
          steps: [
            { do: 'notify', what: 'A has it' },
            { do: 'pause', ms: 1_000 },
          ],
        });
        await stage.one.notified('A has it');
        stage.one.life.process.send({ type: 'jump', ms: -5_000 });
        stage.start(stage.two, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 2_000,
          steps: [{ do: 'pause', ms: 400 }],
        });
        await stage.done();
      },
    },
  },
  {
    name: 'the end of a lease not noticed',
    edits: [{ in: 'LeaseKeeper.tick', find: 'this.lose(hold, over);', replace: '' }],
    laboratory: {
      rules: ['loss'],
      async play(stage) {
        stage.start(stage.one, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 0,
          leaseMs: 300,
          steps: [{ do: 'pause', ms: 700 }],
        });
        await stage.done();
      },
    },
  },
  {
    name: 'fencing tokens without a clock',
    edits: [
      {
        in: 'TAKE',
        find: 'first = now[1] * 1000000 + now[2]',
        replace: 'first = 1',
      },
    ],
    laboratory: {
      rules: ['tokens'],
      async play(stage) {
        const task: Task = {
          style: 'withLock',
          keys: [KEY],
          waitMs: 500,
          steps: [{ do: 'write', key: KEY, pauseMs: 0 }],
        };
        await stage.perform(stage.one, task);
        await stage.perform(stage.one, task);
        stage.topology.scribe.unprotected('FLUSHALL', 2_000);
        await stage.server.cli('FLUSHALL');
        await stage.perform(stage.two, task);
      },
    },
  },
  {
    name: 'a nested call let in beside its sibling',
    edits: [
      {
        in: 'SiblingQueue.enter',
        find: 'if (this.occupied) return this.admission(wait, host);',
        replace: '',
      },
    ],
    simulation: { rules: ['exclusion', 'lost update'] },
    laboratory: {
      rules: ['exclusion', 'lost update'],
      async play(stage) {
        const sibling: Task = {
          style: 'withLock',
          keys: [KEY],
          waitMs: 1_000,
          steps: [{ do: 'write', key: KEY, pauseMs: 50 }],
        };
        stage.start(stage.one, {
          style: 'withLock',
          keys: [KEY],
          waitMs: 0,
          steps: [{ do: 'nest', tasks: [sibling, sibling] }],
        });
        await stage.done();
      },
    },
  },
  {
    name: 'a late answer to a renewal believed',
    edits: [
      {
        in: 'LeaseKeeper.replied',
        find: 'if (over) return this.lose(hold, over);',
        replace: '',
      },
    ],
    simulation: { rules: ['loss'], atEachStep: 'locks' },
  },
  {
    name: 'fencing tokens from a clock that steps back',
    edits: [
      { in: 'TAKE', find: 'if last >= first then first = last + 1 end', replace: '' },
      { in: 'RULES', find: 'if last >= first then first = last + 1 end', replace: '' },
    ],
    simulation: { rules: ['tokens'] },
  },
];
