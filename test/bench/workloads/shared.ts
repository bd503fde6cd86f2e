import type { Comparison, Metric } from '../comparison.js';
import type { Contender } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import { contended } from '../measure/contended.js';
import { jain } from '../measure/statistics.js';
import type { Together } from '../measure/together.js';
import type { Shared } from '../processes/load.js';
import { RedissonCrew, type OfRedisson, type RedissonStyle } from '../processes/redisson-crew.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const PROCESSES = 2;
const CALLERS = 8;
const WORK_MS = 2;
const FOR_MS = 3_000;
const WARM_UP_MS = 300;
/** A JVM reaches its full speed only after it has run the code for a while. */
const WARM_UP_OF_JAVA_MS = 2_000;

/** Redisson, which runs in processes of Java. */
export const redissonBy = (name: string, style: RedissonStyle, renews: boolean): Contender => ({
  name,
  subject: 'redisson',
  style,
  renews,
});

/** A workload in which several may be inside at once. */
export interface SharedWorkload {
  readonly name: string;
  /** The callers, in words. */
  readonly what: string;
  readonly shows: string;
  readonly doesNotShow: string;
  readonly shared: Shared;
  readonly contenders: readonly Contender[];
  findings(comparison: Comparison): readonly Finding[];
}

const METRICS: readonly Metric[] = [
  { key: 'rate', what: 'sections', unit: '/s', better: 'more' },
  { key: 'jain', what: "Jain's index", unit: 'ratio', better: 'more' },
  { key: 'unserved', what: 'callers never served', unit: '', better: 'less' },
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
  { key: 'commands', what: 'Redis commands per section', unit: 'ratio', better: 'less' },
  { key: 'cpu', what: 'CPU time per section', unit: 'µs', better: 'less' },
];

/** Metrics for workloads with writers: a writer gets the lock less often than readers, which share it. */
const FOR_WRITERS: readonly Metric[] = [
  { key: 'writes', what: 'of these, by writers', unit: '/s', better: 'more' },
  { key: 'writers', what: "Jain's index over writers", unit: 'ratio', better: 'more' },
];

export const sharedOf = ({
  name,
  what,
  shows,
  doesNotShow,
  shared,
  contenders,
  findings,
}: SharedWorkload): Workload => {
  const title = `One key, ${PROCESSES} processes, ${what}, ${WORK_MS} ms of work inside`;
  const writers = 'writers' in shared ? shared.writers : 0;
  return {
    name,
    title,
    shows,
    doesNotShow,
    async run(bench: Bench): Promise<Outcome> {
      const { rounds, pace, quick, server } = bench;
      await using java = new RedissonCrew(server, PROCESSES);
      const warm = new Set<string>();
      const comparison = await compare(bench, {
        title,
        metrics: writers > 0 ? [METRICS[0]!, ...FOR_WRITERS, ...METRICS.slice(1)] : METRICS,
        contenders,
        rounds,
        async measure(contender, _at, round) {
          const isJava = contender.subject === 'redisson';
          const load = { callers: CALLERS, workMs: WORK_MS, shared };
          const runFor = (forMs: number, key: string): Promise<Together | OfRedisson> =>
            isJava
              ? java.run(contender.style as RedissonStyle, {
                  ...load,
                  forMs,
                  key: `${contender.name}-${key}`,
                })
              : contended(bench, contender, { ...load, processes: PROCESSES, forMs, keys: { one: key } });
          if (!warm.has(contender.name) && !quick) {
            warm.add(contender.name);
            await runFor(isJava ? WARM_UP_OF_JAVA_MS : WARM_UP_MS, `${name}-warm`);
          }
          const forMs = FOR_MS * pace;
          const ran = await runFor(forMs, `${name}-${round}`);
          const { rate, jain: index, unserved, longestWaitMs: longest, commands, cpuUs: cpu } = ran;
          const written = ran.results.flatMap(({ served }) => served.slice(0, writers));
          const ofWriters = writers > 0 && {
            writes: (written.reduce((sum, times) => sum + times, 0) / forMs) * 1_000,
            writers: jain(written),
          };
          return { ...ran, values: { rate, ...ofWriters, jain: index, unserved, longest, commands, cpu } };
        },
      });
      return { findings: findings(comparison), violations: ownViolations(comparison), comparison };
    },
  };
};
