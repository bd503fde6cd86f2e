import { contended } from '../measure/contended.js';
import { growthOf } from './growth.js';

const CALLERS = 100;
const WORK_MS = 2;
const FOR_MS = 1_500;

export const keys = growthOf({
  name: 'keys',
  title: `Growth with keys: ${CALLERS} callers of one process, each acquires any key, ${WORK_MS} ms of work inside`,
  shows: 'What a lock costs when callers spread over a growing number of keys.',
  doesNotShow:
    'Many keys that are held at the same time. A round is too short to use all of the 100,000 keys.',
  axis: { what: 'keys', points: [1, 100, 10_000, 100_000] },
  quickPoints: [10_000],
  metrics: [
    { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
    { key: 'cpu', what: 'CPU time per lock', unit: 'µs', better: 'less' },
    { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
  ],
  charts: {
    rate: 'Locks per second, by keys that 100 callers spread over (2 ms of work inside)',
    cpu: 'CPU time per lock, by keys that 100 callers spread over',
  },
  async measure(bench, contender, at) {
    const ran = await contended(bench, contender, {
      processes: 1,
      callers: CALLERS,
      forMs: FOR_MS * bench.pace,
      keys: { among: at },
      workMs: WORK_MS,
      style: contender.anyKeyStyle ?? contender.style,
    });
    return { ...ran, values: { rate: ran.rate, cpu: ran.cpuUs, commands: ran.commands } };
  },
});
