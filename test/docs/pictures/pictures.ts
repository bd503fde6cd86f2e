import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import type { Timeline } from './timeline.js';
import type { Tree } from './tree.js';

const { waitMs, watchdogMs } = DEFAULT_SETTINGS;
const SECOND = 1_000;
const seconds = (ms: number): string => `${ms / SECOND} s`;
const MINUTE = 60 * SECOND;

const WORK_MS = 3 * SECOND;

const wait: Timeline = {
  file: 'wait.svg',
  title: 'Three requests for one key',
  description: `The first one runs for ${seconds(WORK_MS)}. The second one waits and runs then. The third one waits for ${seconds(waitMs)} and gets 423 Locked.`,
  until: 7 * SECOND,
  ticks: [
    [0, '0'],
    [WORK_MS, seconds(WORK_MS)],
    [waitMs, `waitMs: ${seconds(waitMs)}`],
    [2 * WORK_MS, seconds(2 * WORK_MS)],
  ],
  lanes: [
    { name: 'Request 1', bars: [{ from: 0, to: WORK_MS, kind: 'runs', label: 'runs, holds order:42' }] },
    {
      name: 'Request 2',
      bars: [
        { from: 0, to: WORK_MS, kind: 'waits', label: 'waits, first of the queue' },
        { from: WORK_MS, to: 2 * WORK_MS, kind: 'runs', label: 'runs' },
      ],
    },
    {
      name: 'Request 3',
      bars: [{ from: 0, to: waitMs, kind: 'waits', label: 'waits, second of the queue' }],
      marks: [{ at: waitMs, kind: 'bad', label: '423 Locked, LockNotAcquiredError' }],
    },
  ],
  handOvers: [{ at: WORK_MS, from: 0, to: 1 }],
};

const renewalMs = watchdogMs / 3;
const killedAt = 2.4 * renewalMs;
const lastRenewal = 2 * renewalMs;
const takenOver = lastRenewal + watchdogMs;

const crash: Timeline = {
  file: 'crash.svg',
  title: 'A holder crashes',
  description: `The watchdog renews the lease every ${seconds(renewalMs)}. After a crash the lease runs down, and the next process gets the lock ${seconds(watchdogMs)} after the last renewal.`,
  until: takenOver + renewalMs,
  ticks: [
    [0, '0'],
    [renewalMs, `watchdogMs / 3: ${seconds(renewalMs)}`],
    [lastRenewal, seconds(lastRenewal)],
    [takenOver, `+ watchdogMs: ${seconds(takenOver)}`],
  ],
  lanes: [
    {
      name: 'Process 1',
      bars: [
        { from: 0, to: killedAt, kind: 'runs', label: 'runs, holds the lock' },
        { from: killedAt, to: takenOver, kind: 'lease', label: 'the rest of its lease' },
      ],
      marks: [
        { at: renewalMs, kind: 'event', label: 'renewed, and again' },
        { at: lastRenewal, kind: 'event', label: '' },
        { at: killedAt, kind: 'bad', label: 'killed' },
      ],
    },
    {
      name: 'Process 2',
      bars: [
        { from: 0, to: takenOver, kind: 'waits', label: 'waits, if its waitMs is long enough' },
        { from: takenOver, to: takenOver + renewalMs, kind: 'runs', label: 'runs' },
      ],
    },
  ],
  handOvers: [{ at: takenOver, from: 0, to: 1 }],
};

const pausedAt = 0.3 * watchdogMs;
const wokenAt = 1.9 * watchdogMs;
const endsAt = pausedAt + 0.9 * watchdogMs;

const fence: Timeline = {
  file: 'late-write.svg',
  title: 'A pause, and the write that comes too late',
  description:
    'A process pauses for longer than its lease. The next one gets the lock and a larger fencing token. The write of the first one comes later, with the smaller token, and the database refuses it.',
  until: 2.2 * watchdogMs,
  ticks: [
    [0, '0'],
    [pausedAt, 'pause begins'],
    [endsAt, 'lease ends'],
    [wokenAt, 'pause ends'],
  ],
  lanes: [
    {
      name: 'Process 1',
      note: 'token 17',
      bars: [
        { from: 0, to: pausedAt, kind: 'runs', label: 'runs' },
        {
          from: pausedAt,
          to: wokenAt,
          kind: 'stopped',
          label: 'does not run: a pause of the machine, or a long block',
        },
      ],
      marks: [{ at: wokenAt, kind: 'bad', label: 'writes with 17; LockLostError' }],
    },
    {
      name: 'Process 2',
      note: 'token 18',
      bars: [
        { from: 0.1 * watchdogMs, to: endsAt, kind: 'waits', label: 'waits' },
        { from: endsAt, to: 1.7 * watchdogMs, kind: 'runs', label: 'writes with 18' },
      ],
    },
    {
      name: 'Database',
      note: 'largest token seen',
      bars: [
        { from: 0, to: 1.5 * watchdogMs, kind: 'lease', label: '16' },
        { from: 1.5 * watchdogMs, to: 2.2 * watchdogMs, kind: 'lease', label: '18' },
      ],
      marks: [{ at: wokenAt, kind: 'bad', label: '17 is smaller than 18: refused' }],
    },
  ],
  handOvers: [{ at: endsAt, from: 0, to: 1 }],
};

const TRIGGER_MS = 10 * MINUTE;
const JOB_MS = 3 * MINUTE;
const late = [0, 0.4 * MINUTE, 0.8 * MINUTE] as const;
const triggers = [0, 1, 2].map((n) => n * TRIGGER_MS);

const cron: Timeline = {
  file: 'cron.svg',
  title: 'A cron job on three replicas, every ten minutes, with oncePerMs',
  description:
    'The first replica to come runs the job, the others skip. It is killed during the job: the next trigger runs the job again. After a finished run, triggers are skipped until the window is over.',
  until: 2.45 * TRIGGER_MS,
  ticks: triggers.map((at) => [at, `3:${String(at / MINUTE).padStart(2, '0')}`] as const),
  lanes: [
    {
      name: 'Replica 1',
      bars: [{ from: 0, to: JOB_MS / 2, kind: 'runs', label: 'runs' }],
      marks: [{ at: JOB_MS / 2, kind: 'bad', label: 'killed' }],
    },
    {
      name: 'Replica 2',
      note: 'clock 24 s late',
      bars: [
        {
          from: TRIGGER_MS + late[1],
          to: TRIGGER_MS + late[1] + JOB_MS,
          kind: 'runs',
          label: 'again',
        },
      ],
      marks: [
        { at: late[1], kind: 'event', label: 'skips: taken' },
        { at: 2 * TRIGGER_MS + late[1], kind: 'event', label: 'skips: done' },
      ],
    },
    {
      name: 'Replica 3',
      note: 'clock 48 s late',
      bars: [],
      marks: [
        { at: late[2], kind: 'event', label: 'skips: taken' },
        { at: TRIGGER_MS + late[2], kind: 'event', label: 'skips: taken' },
        { at: 2 * TRIGGER_MS + late[2], kind: 'event', label: 'skips: done' },
      ],
    },
  ],
};

const nested: Timeline = {
  file: 'nested.svg',
  title: 'A nested call, and a task of a shared queue',
  description:
    'A call that the holder makes with its lease enters the lock at once. A task of a shared queue runs in the same asynchronous context, but belongs to another request: it waits.',
  until: 10 * SECOND,
  ticks: [
    [0, '0'],
    [6 * SECOND, 'release'],
  ],
  lanes: [
    {
      name: 'pay()',
      note: 'holds wallet:7',
      bars: [{ from: 0, to: 6 * SECOND, kind: 'runs', label: '@Locked, lease = currentLease()' }],
    },
    {
      name: 'check()',
      note: 'nested call',
      bars: [{ from: 1.5 * SECOND, to: 3.5 * SECOND, kind: 'runs', label: 'lease.call: enters' }],
    },
    {
      name: 'task of a queue',
      note: 'of another request',
      bars: [
        { from: 2.2 * SECOND, to: 6 * SECOND, kind: 'waits', label: 'same context, no lease: waits' },
        { from: 6 * SECOND, to: 8.5 * SECOND, kind: 'runs', label: 'runs' },
      ],
    },
  ],
  handOvers: [{ at: 6 * SECOND, from: 0, to: 2 }],
};

const store: Tree = {
  file: 'which-store.svg',
  title: 'Which store?',
  description: 'Questions from top to bottom, each with the store that fits.',
  decisions: [
    { question: 'Only one process, or a test?', yes: 'memory' },
    { question: 'Java services with Curator, or a ZooKeeper?', yes: 'ZooKeeper' },
    { question: 'No Redis, but a database?', yes: 'PostgreSQL, MySQL' },
    { question: 'Must a dead server neither stop locks nor double them?', yes: 'a quorum of Redis servers' },
    { question: 'More locks than one server serves, or a Cluster?', yes: 'Redis Cluster' },
    { question: 'New locks seconds after a server has died?', yes: 'Redis behind Sentinel' },
  ],
  otherwise: 'one Redis server',
};

/** The pictures of the pages. */
export const TIMELINES: readonly Timeline[] = [wait, crash, fence, cron, nested];
export const TREES: readonly Tree[] = [store];
