import { TestWorker } from '../../support/worker.js';
import { medianOf, rowOf, type Metric } from '../comparison.js';
import { BY_HAND, type Contender } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import type { FromScale, ScaleKind, ScaleSteps, ToScale } from '../processes/scale.process.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const POINTS = [10, 100, 1_000, 10_000];
const QUICK_POINTS = [10, 100];
const KINDS: readonly ScaleKind[] = ['exclusive', 'fair', 'write', 'read', 'permit'];
const STEPS: readonly (keyof ScaleSteps)[] = ['acquire', 'release', 'leave'];
const TIMEOUT_MS = 220_000;
/** From 100 to 10,000 the time for one may grow so many times: a hundred times would be a cost that grows with the crowd. */
const MAX_GROWTH = 4;

const metrics: readonly Metric[] = STEPS.flatMap((step): Metric[] => [
  { key: `${step}-server`, what: `${step}: time of the server for each caller`, unit: 'µs', better: 'less' },
  { key: `${step}-max`, what: `${step}: longest loop delay`, unit: 'ms', better: 'less' },
  { key: `${step}-p99`, what: `${step}: loop delay, p99`, unit: 'ms', better: 'less' },
]);

const contenders: readonly Contender[] = KINDS.map((kind) => ({ ...BY_HAND, name: kind, style: kind }));

const valuesOf = (steps: ScaleSteps): Record<string, number> =>
  Object.fromEntries(
    STEPS.flatMap((step) => [
      [`${step}-server`, steps[step].serverUs],
      [`${step}-max`, steps[step].delayMaxMs],
      [`${step}-p99`, steps[step].delayP99Ms],
    ]),
  );

/** What one caller costs beside many others, kind by kind. */
export const scale: Workload = {
  name: 'scale',
  title: 'Crowds: one key, 10 to 10,000 callers or holders of one process',
  shows:
    'Whether a caller costs more where there are more of them: time that the server spends in scripts for each, and how long the ' +
    'event loop of the callers stands still. Exclusive, fair and write: all ask for a key that another process has, fair callers 200 at a time (acquire); then it ' +
    'releases, and they have it one after the other, with nothing inside (release). Read and permit: all have it together, each with a hold ' +
    'of its own, acquired 200 at a time (acquire), and release at once (release). Leave: all that wait are aborted at once.',
  doesNotShow:
    'Crowds of processes: each has an entry of its own in the wait queue, while here only fair callers do. What subscriptions and messages ' +
    'cost the server. Where there are 10 callers, the loop delay is that of a timer on a busy machine.',
  async run(bench: Bench): Promise<Outcome> {
    const { server, growthRounds, quick } = bench;
    const points = quick ? QUICK_POINTS : POINTS;
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders,
      axis: { what: 'callers or holders', points },
      rounds: growthRounds,
      async measure({ style }, at) {
        await using worker = TestWorker.start<ToScale, FromScale>(
          new URL('../processes/scale.process.ts', import.meta.url),
          { library: 'built' },
        );
        worker.send({ type: 'measure', url: server.url, kind: style as ScaleKind, count: at });
        const { steps, violations } = await worker.next('measured', { timeoutMs: TIMEOUT_MS });
        await worker.finish();
        return { values: valuesOf(steps), violations, failures: 0 };
      },
    });
    const growth = (kind: ScaleKind, step: keyof ScaleSteps): Finding => {
      const [few, many] = [100, points.at(-1)!].map((at) =>
        medianOf(rowOf(comparison, kind, at), `${step}-server`),
      );
      return {
        what: `${kind}, ${step}: time of the server with ${points.at(-1)!.toLocaleString('en')} of them, ratio to 100`,
        values:
          few === undefined || many === undefined ? [] : [few > 0 ? many / few : many > 0 ? Infinity : 1],
        unit: 'ratio',
        target: { atMost: MAX_GROWTH },
      };
    };
    const findings = KINDS.flatMap((kind) => STEPS.map((step) => growth(kind, step)));
    return { findings, violations: ownViolations(comparison), comparison };
  },
};
