import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardFolder } from '../../support/process-guard.js';
import { monotonicMs } from '../measure/clock.js';
import { commandCounts, sentBetween } from '../measure/redis-commands.js';
import { Register } from '../measure/register.js';
import { jain, sum } from '../measure/statistics.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import { subjectNamed } from '../subjects/index.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const SUBJECT = 'nest-redis-lock';
const PROCESSES = 2;
const CALLERS = 50;
const WORK_MS = 2;
const FOR_MS = 4_000;
/** Long enough for both processes to have got the message. */
const START_IN_MS = 200;
const WAIT_MS = 60_000;

/** What users have: everybody wants the same thing, and there is work to do inside. */
export const hotKey: Workload = {
  name: 'hot-key',
  title: `One key, ${PROCESSES} processes × ${CALLERS} callers, ${WORK_MS} ms of work (a timer), for ${FOR_MS / 1_000} s`,
  async run({ server, progress, rounds }: Bench): Promise<Outcome> {
    const folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-bench-'));
    guardFolder(folder);
    const values = {
      share: [],
      processes: [],
      callers: [],
      unserved: [],
      longest: [],
      commands: [],
    } as Record<'share' | 'processes' | 'callers' | 'unserved' | 'longest' | 'commands', number[]>;
    let violations = 0;
    progress.begin(this.title, rounds);
    try {
      const options = { url: server.url, waitMs: WAIT_MS };
      await using first = await SubjectWorker.start(SUBJECT, options);
      await using second = await SubjectWorker.start(SUBJECT, options);
      const workers = [first, second];
      for (const worker of workers) {
        await worker.run('withLock', { callers: CALLERS, forMs: 500, keys: 'free', workMs: 0 });
      }
      for (let round = 0; round < rounds; round++) {
        const path = join(folder, `register-${round}`);
        Register.create(path);
        const startAt = monotonicMs() + START_IN_MS;
        const before = await commandCounts(server);
        const results = await Promise.all(
          workers.map((worker, at) =>
            worker.run('withLock', {
              callers: CALLERS,
              forMs: FOR_MS,
              keys: { one: `hot-${round}` },
              workMs: WORK_MS,
              startAt,
              register: { path, id: at + 1 },
            }),
          ),
        );
        const after = await commandCounts(server);
        const sections = sum(results.map((result) => result.sections));
        const served = results.flatMap((result) => result.served);
        violations += sum(results.map((result) => result.violations));
        values.share.push((sum(results.map((result) => result.busyMs)) / FOR_MS) * 100);
        values.processes.push(jain(results.map((result) => sum(result.served))));
        values.callers.push(jain(served));
        values.unserved.push(served.filter((times) => times === 0).length);
        values.longest.push(Math.max(...results.map((result) => result.longestWaitMs)));
        values.commands.push(
          sentBetween(before, after, subjectNamed(SUBJECT).insideScripts) / Math.max(1, sections),
        );
        progress.step();
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    return {
      findings: [
        { what: 'time the lock is at work', values: values.share, unit: '%', target: { atLeast: 95 } },
        {
          what: "Jain's index over processes",
          values: values.processes,
          unit: 'ratio',
          target: { atLeast: 0.95 },
        },
        {
          what: "Jain's index over callers",
          values: values.callers,
          unit: 'ratio',
          target: { atLeast: 0.95 },
        },
        { what: 'callers never served', values: values.unserved, unit: '', target: { atMost: 0 } },
        { what: 'longest wait', values: values.longest, unit: 'ms' },
        { what: 'Redis commands for each lock', values: values.commands, unit: 'ratio' },
      ],
      violations,
    };
  },
};
