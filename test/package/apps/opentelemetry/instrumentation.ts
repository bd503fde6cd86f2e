import { metrics, NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';

/** Spans in the order of their ends. */
export const spans: tracing.ReadableSpan[] = [];

const nothing = (): Promise<void> => Promise.resolve();

const exporter = new metrics.InMemoryMetricExporter(metrics.AggregationTemporality.CUMULATIVE);
const reader = new metrics.PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });

/** Returns the last value of each point, or the number of values of a histogram. */
export const measured = async (): Promise<Record<string, number>> => {
  exporter.reset();
  await reader.forceFlush();
  const found: Record<string, number> = {};
  for (const { scopeMetrics } of exporter.getMetrics()) {
    for (const { descriptor, dataPoints } of scopeMetrics.flatMap((scope) => scope.metrics)) {
      for (const { attributes, value } of dataPoints) {
        const name = [descriptor.name, ...Object.values(attributes)].join(' ');
        found[name] = typeof value === 'number' ? value : (value as { count: number }).count;
      }
    }
  }
  return found;
};

export const sdk = new NodeSDK({
  spanProcessors: [
    {
      onStart: () => undefined,
      onEnd: (span) => void spans.push(span),
      forceFlush: nothing,
      shutdown: nothing,
    },
  ],
  metricReaders: [reader],
  instrumentations: [new RedisLockInstrumentation()],
});
sdk.start();
