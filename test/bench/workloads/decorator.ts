import { runRound } from '../measure/round.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const WARM_UP_MS = 1_000;
const STYLES = ['withLock', '@Locked'] as const;

/** The cost of the decorator relative to the same call by hand, in one process and on the same keys. */
export const decorator: Workload = {
  name: 'decorator',
  title: '@Locked beside withLock, no work inside',
  async run({ server, progress, rounds, pace }: Bench): Promise<Outcome> {
    await using worker = await SubjectWorker.start('nest-redis-lock', { url: server.url });
    const findings: Finding[] = [];
    let violations = 0;
    const loads = [
      { what: '1 caller, one key', callers: 1, keys: { one: 'same' }, target: { atMost: 1.05 } },
      { what: '100 callers, free keys', callers: 100, keys: 'free', target: undefined },
    ] as const;
    progress.begin(this.title, loads.length * (rounds + 1));
    for (const { what, callers, keys, target } of loads) {
      const slice = (style: string, forMs: number) => worker.run(style, { callers, forMs, keys, workMs: 0 });
      for (const style of STYLES) await slice(style, WARM_UP_MS * pace);
      progress.step();
      const ratios: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const [byHand, decorated] = await runRound(STYLES, pace, slice);
        ratios.push(byHand!.rate / decorated!.rate);
        violations += byHand!.violations + decorated!.violations;
        progress.step();
      }
      findings.push({ what: `${what}: time, ratio to withLock`, values: ratios, unit: 'ratio', target });
    }
    return { findings, violations };
  },
};
