import {
  diag,
  metrics,
  trace,
  type MeterProvider,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { invalidOption } from '../core/settings/option-checks.js';
import { resolveConfig, type RedisLockInstrumentationConfig } from './instrumentation-config.js';
import { LockMetrics } from './lock-metrics.js';
import { LockSpans } from './lock-spans.js';

/** Version of the package, which the build inserts. */
declare const PACKAGE_VERSION: string;

const NAME = 'nest-redis-lock';
const VERSION = typeof PACKAGE_VERSION === 'undefined' ? 'source' : PACKAGE_VERSION;

/** A `TracerProvider` of `@opentelemetry/api`, of any version. */
export interface TracerProviderLike {
  getTracer(name: string, version?: string): unknown;
}

/** A `MeterProvider` of `@opentelemetry/api`, of any version. */
export interface MeterProviderLike {
  getMeter(name: string, version?: string): unknown;
}

type Subscription = readonly [name: string, onMessage: (message: unknown) => void];

/**
 * Instrumentation of OpenTelemetry for the locks of this process, in all modules and in both builds: spans of waiting and
 * holding, and metrics. It needs the package `@opentelemetry/api` 1.9 or newer, and subscribes to the channels of
 * `node:diagnostics_channel` that the library publishes on.
 *
 * @throws LockConfigurationError for an invalid option
 *
 * @example new NodeSDK({ instrumentations: [new RedisLockInstrumentation()] }).start();
 */
export class RedisLockInstrumentation {
  /** Name of the instrumentation scope: that of the package. */
  readonly instrumentationName = NAME;
  /** Version of the package. */
  readonly instrumentationVersion = VERSION;
  private config: Required<RedisLockInstrumentationConfig>;
  private tracerProvider: TracerProvider | undefined;
  private meterProvider: MeterProvider | undefined;
  private tracer: Tracer | undefined;
  private readonly subscriptions: readonly Subscription[];
  private readonly metrics: LockMetrics;
  private readonly spans: LockSpans;
  private subscribed = false;
  private hasReported = false;

  /** Checks the options, and subscribes unless `enabled` is false. */
  constructor(config?: RedisLockInstrumentationConfig) {
    this.config = resolveConfig(config);
    this.metrics = new LockMetrics(() => this.meterProvider ?? metrics.getMeterProvider(), NAME, VERSION);
    this.spans = new LockSpans(
      () => (this.tracer ??= (this.tracerProvider ?? trace.getTracerProvider()).getTracer(NAME, VERSION)),
      () => this.config.keys,
    );
    this.subscriptions = this.subscriptionsOf(this.metrics, this.spans);
    if (this.config.enabled) this.enable();
  }

  /** Subscribes to the channels. A further call does nothing. */
  enable(): void {
    if (this.subscribed) return;
    this.subscribed = true;
    for (const [name, onMessage] of this.subscriptions) subscribe(name, onMessage);
  }

  /**
   * Unsubscribes from all channels, and counts what is in progress as ended. Spans that are open then are not exported. A
   * further call does nothing.
   */
  disable(): void {
    if (!this.subscribed) return;
    this.subscribed = false;
    for (const [name, onMessage] of this.subscriptions) unsubscribe(name, onMessage);
    this.guard(() => this.spans.stop());
    this.guard(() => this.metrics.stop());
  }

  /** Sets the provider for spans. Default: the global one. The SDK calls it. */
  setTracerProvider(provider: TracerProviderLike): void {
    if (typeof provider?.getTracer !== 'function') invalidOption('provider', 'a TracerProvider', provider);
    this.tracerProvider = provider as TracerProvider;
    this.tracer = undefined;
  }

  /** Sets the provider for metrics. Default: the global one. The SDK calls it. */
  setMeterProvider(provider: MeterProviderLike): void {
    if (typeof provider?.getMeter !== 'function') invalidOption('provider', 'a MeterProvider', provider);
    this.meterProvider = provider as MeterProvider;
  }

  /**
   * Replaces the options. `enabled` has an effect only in the constructor.
   *
   * @throws LockConfigurationError for an invalid option
   */
  setConfig(config: RedisLockInstrumentationConfig): void {
    this.config = resolveConfig(config);
  }

  /** Returns the options, with their defaults. */
  getConfig(): RedisLockInstrumentationConfig {
    return this.config;
  }

  private subscriptionsOf(counts: LockMetrics, spans: LockSpans): readonly Subscription[] {
    const on = <M>(name: string, ...listeners: readonly ((message: M) => void)[]): Subscription => [
      name,
      (message) => {
        for (const listener of listeners) this.guard(() => listener(message as M));
      },
    ];
    const [acquire, section] = ['tracing:nest-redis-lock:acquire', 'tracing:nest-redis-lock:section'];
    return [
      on(`${acquire}:start`, counts.acquireStarted.bind(counts), spans.acquireStarted.bind(spans)),
      // Not `end`: the call has returned its promise by then, and an error comes later.
      on(`${acquire}:asyncEnd`, counts.acquireEnded.bind(counts), spans.acquireEnded.bind(spans)),
      on(`${section}:start`, spans.sectionStarted.bind(spans)),
      on(`${section}:end`, spans.sectionReturned.bind(spans)),
      on(`${section}:asyncEnd`, spans.sectionEnded.bind(spans)),
      on('nest-redis-lock:hold-began', counts.holdBegan.bind(counts)),
      on('nest-redis-lock:hold-ended', counts.holdEnded.bind(counts)),
      on('nest-redis-lock:store', counts.store.bind(counts)),
    ];
  }

  /** Node ends the process when a subscriber of a channel throws. */
  private guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (this.hasReported) return;
      this.hasReported = true;
      try {
        diag.error('nest-redis-lock: the instrumentation failed. (Said once.)', error);
      } catch {
        // A logger that throws cannot be told.
      }
    }
  }
}
