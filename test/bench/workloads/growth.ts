import type { Axis, Comparison, Metric, Sample } from '../comparison.js';
import { libraries, type Contender } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import type { Chart } from '../report/chart/chart.js';
import type { Bench, Finding, Workload } from '../workload.js';

/** A workload that is measured at several points, to show how the cost grows. */
export interface Growth {
  readonly name: string;
  readonly title: string;
  readonly shows: string;
  readonly doesNotShow: string;
  readonly axis: Axis;
  /** The points of the quick mode. */
  readonly quickPoints: readonly number[];
  readonly metrics: readonly Metric[];
  /** What is drawn, by metric: the title. */
  readonly charts: Readonly<Record<string, string>>;
  readonly contenders?: readonly Contender[];
  /** Findings about this library, with their targets. */
  findings?(comparison: Comparison): readonly Finding[];
  measure(bench: Bench, contender: Contender, at: number, round: number): Promise<Sample>;
  done?(bench: Bench, contender: Contender): Promise<void>;
}

export const growthOf = (growth: Growth): Workload => {
  const { name, title, shows, doesNotShow, axis, metrics } = growth;
  const charts = Object.entries(growth.charts).map(([metric, chartTitle]): Chart => ({
    kind: 'lines',
    file: `${name}-${metric}.svg`,
    title: chartTitle,
    metric,
  }));
  return {
    name,
    title,
    shows,
    doesNotShow,
    charts,
    async run(bench) {
      const comparison = await compare(bench, {
        title,
        metrics,
        contenders: growth.contenders ?? libraries,
        axis: bench.quick ? { ...axis, points: growth.quickPoints } : axis,
        rounds: bench.growthRounds,
        measure: (contender, at, round) => growth.measure(bench, contender, at, round),
        ...(growth.done && { done: (contender: Contender) => growth.done!(bench, contender) }),
      });
      return {
        findings: growth.findings?.(comparison) ?? [],
        violations: ownViolations(comparison),
        comparison,
      };
    },
  };
};
