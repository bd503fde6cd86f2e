import { pinned } from '../measure/pinning.js';
import { runRound } from '../measure/round.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const CALLERS = [1, 100];
const WARM_UP_MS = 1_500;
const TARGET = 0.9;

/** Locks that nobody else wants, with nothing inside: what the library itself costs. */
export const freeKeys: Workload = {
  name: 'free-keys',
  title: 'Free keys, no work inside',
  async run({ server, progress, rounds, pace }: Bench): Promise<Outcome> {
    await using floor = await SubjectWorker.start('floor', { url: server.url });
    await using library = await SubjectWorker.start('nest-redis-lock', { url: server.url });
    const workers = [floor, library];
    using _cpus = pinned(
      server.pid,
      workers.map(({ pid }) => pid),
    );
    const findings: Finding[] = [];
    let violations = 0;
    progress.begin(this.title, CALLERS.length * (rounds + 1));

    for (const callers of CALLERS) {
      const slice = (worker: SubjectWorker, forMs: number) =>
        worker.run('withLock', { callers, forMs, keys: 'free', workMs: 0 });
      for (const worker of workers) await slice(worker, WARM_UP_MS);
      progress.step();
      const rates = workers.map((): number[] => []);
      const cpu = workers.map((): number[] => []);
      for (let round = 0; round < rounds; round++) {
        const results = await runRound(workers, pace, slice);
        results.forEach((result, at) => {
          rates[at]!.push(result.rate);
          cpu[at]!.push(result.cpuUs);
          violations += result.violations;
        });
        progress.step();
      }
      const who = callers === 1 ? '1 caller' : `${callers} callers`;
      workers.forEach(({ name }, at) => {
        findings.push({ what: `${who}: ${name}, locks`, values: rates[at]!, unit: '/s' });
        findings.push({ what: `${who}: ${name}, CPU time for each`, values: cpu[at]!, unit: 'µs' });
      });
      findings.push({
        what: `${who}: locks, ratio to the floor`,
        values: rates[1]!.map((rate, round) => rate / rates[0]![round]!),
        unit: 'ratio',
        target: { atLeast: TARGET },
      });
    }
    return { findings, violations };
  },
};
