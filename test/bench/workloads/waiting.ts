import { commandCounts, sentBetween } from '../measure/redis-commands.js';
import { rateOf } from '../measure/round.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import { subjectNamed } from '../subjects/index.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const SUBJECT = 'nest-redis-lock';
const CALLERS = 100;
const FOR_MS = 1_000;

/** Waiters of one process must not each ask Redis for themselves. */
export const waiting: Workload = {
  name: 'waiting',
  title: `One key, ${CALLERS} callers of one process, no work inside`,
  async run({ server, progress, rounds, pace }: Bench): Promise<Outcome> {
    await using worker = await SubjectWorker.start(SUBJECT, { url: server.url, waitMs: 60_000 });
    const commands: number[] = [];
    const rates: number[] = [];
    let violations = 0;
    progress.begin(this.title, rounds);
    for (let round = 0; round < rounds; round++) {
      const before = await commandCounts(server);
      const result = await worker.run('withLock', {
        callers: CALLERS,
        forMs: FOR_MS * pace,
        keys: { one: 'wanted' },
        workMs: 0,
      });
      const after = await commandCounts(server);
      violations += result.violations;
      commands.push(sentBetween(before, after, subjectNamed(SUBJECT).insideScripts) / result.sections);
      rates.push(rateOf(result));
      progress.step();
    }
    return {
      findings: [
        { what: 'Redis commands for each lock', values: commands, unit: 'ratio', target: { atMost: 2.2 } },
        { what: 'locks', values: rates, unit: '/s' },
      ],
      violations,
    };
  },
};
