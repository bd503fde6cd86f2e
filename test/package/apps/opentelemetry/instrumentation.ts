import type { Attributes, HrTime, SpanContext } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';

/** What both versions of the SDK say about a span. */
interface EndedSpan {
  readonly name: string;
  readonly startTime: HrTime;
  readonly attributes: Attributes;
  readonly status: { readonly code: number };
  readonly parentSpanContext?: SpanContext;
  spanContext(): SpanContext;
}

/** Spans in the order of their ends. */
export const spans: EndedSpan[] = [];

const nothing = (): Promise<void> => Promise.resolve();

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });

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
