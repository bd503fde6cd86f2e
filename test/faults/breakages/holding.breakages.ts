import { setTimeout as sleep } from 'node:timers/promises';
import { labNow } from '../history/lab-clock.js';
import type { Task } from '../workload/task.js';
import type { Breakage } from './breakage.js';
import { holder, KEY } from './tasks.js';

const SCRIPTS = 'stores/redis/scripts/exclusive.ts';
/** Mistakes in keeping a lease and in ending it. */
export const HOLDING_BREAKAGES: readonly Breakage[] = [
  {
    name: 'release without owner check',
    patches: [
      {
        file: SCRIPTS,
        find: "local held = redis.pcall('hexists', KEYS[1], ARGV[1])\n",
        replace: 'local held = 1\n',
      },
    ],
    seenBy: ['exclusion'],
    async play(stage) {
      stage.start(stage.one, holder('A', { leaseMs: 300 }));
      await stage.one.told('A has it');
      stage.start(stage.two, holder('B'));
      await stage.two.told('B has it');
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
  {
    name: 'release tells nobody',
    patches: [
      { file: SCRIPTS, find: "local told = redis.call(ARGV[3], ARGV[2], '0')", replace: 'local told = 0' },
    ],
    seenBy: ['promptness'],
    async play(stage) {
      stage.start(stage.one, holder('A', { leaseMs: 5_000 }));
      await stage.one.told('A has it');
      stage.start(stage.two, { style: 'withLock', keys: [KEY], waitMs: 1_500, steps: [] });
      await stage.listenedTo(KEY);
      await sleep(100);
      stage.one.go('A ends');
    },
  },
  {
    name: 'renewal that re-creates a lost hold',
    patches: [
      {
        file: SCRIPTS,
        find: '    replies[i] = -1\n',
        replace:
          "    redis.call('hset', KEYS[i], ARGV[2 * i - 1], 1)\n    redis.call('pexpire', KEYS[i], ARGV[2 * i])\n    replies[i] = tonumber(ARGV[2 * i])\n",
      },
    ],
    seenBy: ['exclusion', 'foundation'],
    async play(stage) {
      stage.start(stage.one, holder('A'));
      await stage.one.told('A has it');
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
      await stage.two.told('B has it');
      await sleep(oldLeaseMs + 300);
      stage.one.go('A ends');
      stage.two.go('B ends');
    },
  },
  {
    name: 'renewal that shortens',
    patches: [{ file: SCRIPTS, find: 'if left < lease then', replace: 'if true then' }],
    seenBy: ['shortened'],
    async play(stage) {
      const steps: Task['steps'] = [
        { do: 'extend', ms: 4_000 },
        { do: 'pause', ms: 900 },
      ];
      stage.start(stage.one, { style: 'withLock', keys: [KEY], waitMs: 0, steps });
      await stage.done();
    },
  },
  {
    name: 'validity counted from the reply instead of the send',
    patches: [
      {
        file: 'core/contend.ts',
        find: 'watchdogMs, now, sentAt, validForMs);',
        replace: 'watchdogMs, now, now, validForMs);',
      },
    ],
    seenBy: ['exclusion', 'foundation'],
    async play(stage) {
      stage.hampered(stage.one, 2_000);
      stage.connection(stage.one, 'commands').delay(300, ['toClient']);
      const asked = stage.asking(stage.one, 'acquire');
      stage.start(stage.one, {
        style: 'withLock',
        keys: [KEY],
        waitMs: 1_000,
        leaseMs: 500,
        steps: [{ do: 'pause', ms: 600 }],
      });
      await asked;
      stage.start(stage.two, {
        style: 'withLock',
        keys: [KEY],
        waitMs: 2_000,
        steps: [{ do: 'pause', ms: 300 }],
      });
      await stage.done();
    },
  },
  {
    name: 'wall clock instead of monotonic',
    patches: [
      {
        file: 'core/runtime.ts',
        find: 'clock: { now(): number } = new SuspendAwareClock()',
        replace: 'clock: { now(): number } = { now: () => Date.now() }',
      },
    ],
    seenBy: ['exclusion', 'foundation', 'loss'],
    async play(stage) {
      stage.start(stage.one, {
        style: 'withLock',
        keys: [KEY],
        waitMs: 0,
        leaseMs: 400,
        steps: [
          { do: 'tell', what: 'A has it' },
          { do: 'pause', ms: 1_000 },
        ],
      });
      await stage.one.told('A has it');
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
  {
    name: 'the end of a lease not noticed',
    patches: [
      {
        file: 'core/lease-keeper.ts',
        find: "        this.lose(hold, 'expired');\n        continue;",
        replace: '        continue;',
      },
    ],
    seenBy: ['loss'],
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
  {
    name: 'tokens without a clock',
    patches: [{ file: SCRIPTS, find: 'local first = now[1] * 1000000 + now[2]', replace: 'local first = 1' }],
    seenBy: ['tokens'],
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
  {
    name: 'a sibling let in by reentrancy',
    patches: [
      { file: 'core/gate.ts', find: 'if (this.occupied) return this.admission(wait, runtime);', replace: '' },
    ],
    seenBy: ['exclusion', 'lost update'],
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
];
