import { context, trace } from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-node';

/** One point of a metric: the sum, or of a histogram the number of values. */
export interface Point {
  readonly attributes: Attributes;
  readonly value: number;
}

/** The real SDK, with exporters in memory. */
export class Sdk {
  private readonly exporter = new InMemorySpanExporter();
  private readonly metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly tracers = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.exporter)] });
  readonly meters = new MeterProvider({
    readers: [
      new PeriodicExportingMetricReader({ exporter: this.metricExporter, exportIntervalMillis: 3_600_000 }),
    ],
  });
  readonly tracer = this.tracers.getTracer('app');

  /** Makes the context manager of the SDK the global one, as its `register` does. */
  start(): void {
    this.tracers.register();
  }

  /** Takes away what context managers have only since 2.10: before, there is only their storage. */
  withoutAttach(): void {
    const api = context as unknown as { _getContextManager(): object };
    Object.defineProperty(api._getContextManager(), 'attach', { value: undefined });
  }

  spans(): readonly ReadableSpan[] {
    return this.exporter.getFinishedSpans();
  }

  span(name: string): ReadableSpan {
    const found = this.spans().filter((span) => span.name === name);
    if (found.length !== 1)
      throw new Error(
        `there are ${found.length} spans ${name} of ${this.spans()
          .map((s) => s.name)
          .join(', ')}`,
      );
    return found[0]!;
  }

  /** Names of the ended spans in the order of their starts, each under its parent. */
  tree(parent?: string): readonly unknown[] {
    return this.spans()
      .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
      .sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
      .map((span) => {
        const children = this.tree(span.spanContext().spanId);
        return children.length === 0 ? span.name : [span.name, ...children];
      });
  }

  async metrics(): Promise<Readonly<Record<string, readonly Point[]>>> {
    this.metricExporter.reset();
    await this.meters.forceFlush();
    const found: Record<string, readonly Point[]> = {};
    const scopes = this.metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    for (const { descriptor, dataPoints } of scopes.flatMap(({ metrics }) => metrics)) {
      found[descriptor.name] = dataPoints.map(({ attributes, value }) => ({
        attributes,
        value: typeof value === 'number' ? value : (value as { count: number }).count,
      }));
    }
    return found;
  }

  async stop(): Promise<void> {
    await this.tracers.shutdown();
    await this.meters.shutdown();
    trace.disable();
    context.disable();
  }
}
