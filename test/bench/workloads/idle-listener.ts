import { Redis } from 'ioredis';
import { OURS } from '../contenders.js';
import { contended } from '../measure/contended.js';
import type { Together } from '../measure/together.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const PROCESSES = 2;
const CALLERS = 12;
const WORK_MS = 2;
const FOR_MS = 2_000;

/** A dashboard that subscribes to all channels and requests no lock. */
export const idleListener: Workload = {
  name: 'idle-listener',
  title: `An idle listener by pattern: one key, ${PROCESSES} processes × ${CALLERS} callers, ${WORK_MS} ms of work inside`,
  async run(bench: Bench): Promise<Outcome> {
    const { server, progress, rounds, pace } = bench;
    const run = (name: string): Promise<Together> =>
      contended(bench, OURS, {
        processes: PROCESSES,
        callers: CALLERS,
        forMs: FOR_MS * pace,
        keys: { one: name },
        workMs: WORK_MS,
      });
    const rates: number[] = [];
    const commands: number[] = [];
    let violations = 0;
    progress.begin(this.title, rounds);
    for (let round = 0; round < rounds; round++) {
      const alone = await run(`alone-${round}`);
      const listener = new Redis(server.url);
      let listening: Together;
      try {
        await listener.psubscribe('*');
        listening = await run(`heard-${round}`);
      } finally {
        listener.disconnect();
      }
      rates.push(listening.rate / alone.rate);
      commands.push(listening.commands! / alone.commands!);
      violations += alone.violations + listening.violations;
      progress.step();
    }
    return {
      findings: [
        {
          what: 'locks, relative to a run without it',
          values: rates,
          unit: 'ratio',
          target: { atLeast: 0.95 },
        },
        {
          what: 'commands, relative to a run without it',
          values: commands,
          unit: 'ratio',
          target: { atMost: 1.05 },
        },
      ],
      violations,
    };
  },
};
