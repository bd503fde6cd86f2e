import { contended } from '../measure/contended.js';
import { growthOf } from './growth.js';

const WORK_MS = 2;
const FOR_MS = 1_500;
/** More callers than `MANY` need some time before the first one is served. */
const LONGER_MS = 5_000;
/** From this many callers on, serving the last waiters takes too long: their process is ended. */
const MANY = 1_000;

export const callers = growthOf({
  name: 'callers',
  title: `Growth with callers: one key, one process, ${WORK_MS} ms of work inside`,
  shows:
    'What a lock costs with a growing number of callers of one process, and whether the lock stays in use.',
  doesNotShow: 'Callers in other processes.',
  axis: { what: 'callers', points: [1, 10, 100, 1_000, 10_000] },
  quickPoints: [1_000],
  metrics: [
    { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
    { key: 'cpu', what: 'CPU time per lock', unit: 'µs', better: 'less' },
    { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
  ],
  charts: {
    rate: 'Locks per second, by callers of the same key (2 ms of work inside)',
    cpu: 'CPU time per lock, by callers of the same key',
    commands: 'Redis commands per lock, by callers of the same key',
  },
  async measure(bench, contender, at, round) {
    const many = at >= MANY;
    const ran = await contended(bench, contender, {
      processes: 1,
      callers: at,
      forMs: (at > MANY ? LONGER_MS : FOR_MS) * bench.pace,
      keys: { one: `callers-${at}-${round}` },
      workMs: WORK_MS,
      ...(many && { graceMs: 0 }),
    });
    return { ...ran, values: { rate: ran.rate, cpu: ran.cpuUs, commands: ran.commands } };
  },
});
