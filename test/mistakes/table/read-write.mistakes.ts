import { setTimeout as sleep } from 'node:timers/promises';
import { holder, KEY } from '../../faults/directed/tasks.js';
import type { Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

/** Comes for a moment, and does not wait. */
const passerBy = (mode: 'read' | 'write'): Task => ({
  style: 'tryAcquire',
  mode,
  keys: [KEY],
  waitMs: 0,
  steps: [{ do: 'pause', ms: 50 }],
});

/** Mistakes that only a read-write lock can show. */
export const READ_WRITE_MISTAKES: readonly Mistake[] = [
  {
    name: 'a writer let in beside readers',
    edits: [
      {
        in: 'READ_WRITE_ENTER',
        find: "if mode == 'read' and kind == 'read' then",
        replace: "if mode == 'read' then",
      },
    ],
    simulation: { rules: ['exclusion'] },
    laboratory: {
      rules: ['exclusion'],
      async play(stage) {
        stage.start(stage.one, holder('A', { mode: 'read' }));
        await stage.one.notified('A has it');
        await stage.perform(stage.two, passerBy('write'));
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'a reader let in beside a writer',
    edits: [
      {
        in: 'READ_WRITE_ENTER',
        find: "if mode == 'read' and kind == 'read' then",
        replace: "if kind == 'read' then",
      },
    ],
    simulation: { rules: ['exclusion'] },
    laboratory: {
      rules: ['exclusion'],
      async play(stage) {
        stage.start(stage.one, holder('A', { mode: 'write' }));
        await stage.one.notified('A has it');
        await stage.perform(stage.two, passerBy('read'));
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'the end of one reader ends the holds of all',
    edits: [
      {
        in: 'READ_WRITE_RELEASE',
        find: 'local others = others_left(hash, index, ARGV[4], me)',
        replace: 'local others = 0',
      },
    ],
    simulation: { rules: ['foundation', 'entry'] },
    laboratory: {
      rules: ['foundation'],
      async play(stage) {
        stage.start(stage.one, holder('A', { mode: 'read', leaseMs: 5_000 }));
        await stage.one.notified('A has it');
        await stage.perform(stage.two, passerBy('read'));
        await sleep(500);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'one of those who read together takes the hold from the others',
    edits: [{ in: 'Hold.dropLease', find: 'return this.leaseCount > 0;', replace: 'return false;' }],
    simulation: { rules: ['foundation', 'entry'] },
  },
  {
    name: 'a renewal makes the lost hold of a reader anew',
    edits: [
      {
        in: 'READ_WRITE_EXTEND',
        find: 'if not has then',
        replace: `if not has then
          redis.call('set', timeout, '1', 'px', whole(lease))
          redis.call('hset', hash, 'mode', 'read', me, 1)
          redis.call('pexpire', hash, whole(lease))
          if lease then return lease end`,
      },
    ],
    simulation: { rules: ['exclusion'] },
  },
  {
    name: 'the end of a read or write lock told to nobody',
    edits: [{ in: 'READ_WRITE_RELEASE', find: 'redis.call(ARGV[3], ARGV[2], payload)', replace: '' }],
    simulation: { rules: ['promptness'] },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, holder('A', { mode: 'write', leaseMs: 5_000 }));
        await stage.one.notified('A has it');
        stage.start(stage.two, { ...passerBy('read'), style: 'withLock', waitMs: 1_500 });
        await stage.listenedTo(KEY);
        await sleep(100);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'readers behind a writer that gives up are not told',
    edits: [
      {
        in: 'READ_WRITE_RELEASE',
        find: "if found.size > 2 then redis.call(ARGV[3], ARGV[2], '1') end",
        replace: '',
      },
    ],
    simulation: { rules: ['promptness'], locks: 'readWrite' },
  },
  {
    name: 'readers that go past a writer who waits',
    edits: [
      {
        in: 'READ_WRITE_QUEUE',
        find: "if kind == 'write' or one.kind == 'write' then",
        replace: "if kind == 'write' then",
      },
    ],
    simulation: { rules: ['overtaking'] },
  },
  {
    name: 'a hold that readers join for ever',
    edits: [
      {
        in: 'Hold.addLease',
        find: 'now < (this.joinableUntil ?? -Infinity)',
        replace: '(this.joinableUntil ?? 0) > 0',
      },
    ],
    simulation: { rules: ['hand-off batch'] },
  },
  {
    name: 'a hold joined that may be gone',
    edits: [{ in: 'Hold.addLease', find: '|| !this.isSound(now)', replace: '' }],
    simulation: { rules: ['entry', 'foundation'] },
  },
  {
    name: 'a reader whose time is over keeps writers out',
    edits: [
      {
        in: 'READ_WRITE_BASICS',
        find: "redis.pcall('pexpire', key, whole(lease))",
        replace: "redis.pcall('pexpire', key, whole(lease + 20000))",
      },
    ],
    simulation: { rules: ['dead key', 'promptness'] },
  },
  {
    name: 'a key that is given to read and to write taken to read',
    edits: [
      {
        in: 'oneKindOf',
        find: "if (isHalf(one) && isHalf(other)) return 'write';",
        replace: "if (isHalf(one) && isHalf(other)) return 'read';",
      },
    ],
    simulation: { rules: ['exclusion'] },
  },
  {
    name: 'a write lock that goes into a read lock',
    edits: [{ in: 'write', find: "reentrantInto: ['write']", replace: "reentrantInto: ['write', 'read']" }],
    simulation: { rules: ['exclusion'] },
  },
  {
    name: 'a writer that reads on tells nobody',
    edits: [{ in: 'READ_WRITE_DOWNGRADE', find: "redis.call(ARGV[4], ARGV[3], '1')", replace: '' }],
    simulation: { rules: ['promptness'], locks: 'readWrite' },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        const steps = [...holder('A').steps];
        steps.splice(1, 0, { do: 'wait', for: 'B waits' }, { do: 'downgrade' });
        stage.start(stage.one, holder('A', { mode: 'write', leaseMs: 5_000, steps }));
        await stage.one.notified('A has it');
        stage.start(stage.two, { ...passerBy('read'), style: 'withLock', waitMs: 1_500 });
        await stage.listenedTo(KEY);
        await sleep(100);
        stage.one.go('B waits');
        await sleep(1_600);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'a writer that reads on without a hold',
    edits: [
      {
        in: 'READ_WRITE_DOWNGRADE',
        find: "redis.call('set', timeout, '1', 'px', whole(lease))",
        replace: '',
      },
    ],
    simulation: { rules: ['foundation', 'entry'] },
  },
];
