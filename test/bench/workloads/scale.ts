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
/** From 100 to 10,000 callers the time per caller may grow by this factor. A cost that grows with the crowd has 100. */
const MAX_GROWTH = 4;

const metrics: readonly Metric[] = STEPS.flatMap((step): Metric[] => [
  { key: `${step}-server`, what: `${step}: time of the server per caller`, unit: 'µs', better: 'less' },
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

/** The cost of one caller among many others, for each kind. */
export const scale: Workload = {
  name: 'scale',
  title: 'Crowds: one key, 10 to 10,000 callers or holders of one process',
  shows:
    'Whether the cost per caller grows with the number of callers. The cost is the time of the server in scripts, and how long the ' +
    'event loop of the callers is blocked. Exclusive, fair and write: all callers request a key that another process holds, fair ' +
    'callers 200 at a time (acquire). Then it releases, and the callers get the key one after the other, with nothing inside (release). ' +
    'Read and permit: all callers hold the key together, each with its own hold, 200 requests at a time (acquire), and release ' +
    'at once (release). Leave: all waiters are aborted at once.',
  doesNotShow:
    'Crowds of processes: each process has its own queue entry, while here only fair callers have one. The cost of subscriptions and ' +
    'messages in the server. With 10 callers, the loop delay is the delay of a timer on a busy machine.',
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
        what: `${kind}, ${step}: time of the server with ${points.at(-1)!.toLocaleString('en')} callers, relative to 100`,
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
