import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';
import { createTestingLocks } from 'nest-redis-lock/testing';
import { Registry } from 'prom-client';
import ts from 'typescript';
import * as diagnosticsChannel from 'node:diagnostics_channel';
import * as promClient from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { coreUnderTest } from '../../support/core/core-under-test.js';
import { notExecuted } from '../../support/core/scripted-store.js';
import { dashboard, groupedBy, selected } from '../../support/dashboard.js';
import { codeBlocks, readFromRoot } from '../../support/markdown.js';

/** Labels that an expression groups by or selects. */
const labelsOf = (expr: string): readonly string[] => [
  ...groupedBy(expr),
  ...[...expr.matchAll(/(\w+)=~"\$/g)].map(([, name]) => name!),
];

/** The samples of a page in the text format of Prometheus: names, each with its labels. */
const samplesOf = (text: string): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of text.matchAll(/^(redis_lock_\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(name) ?? new Set();
    for (const [, label] of labels.matchAll(/(\w+)="/g)) known.add(label!);
    found.set(name, known);
  }
  return found;
};

/** Does once all that a metric counts. */
const useLocks = async (): Promise<void> => {
  const locks = createTestingLocks('memory', { waitMs: 0 });
  const holder = await locks.acquire('k');
  await locks.tryAcquire('k');
  await holder.release();
  await locks.withLock('k', () => locks.forceUnlock('k'));
  const { manager, store } = coreUnderTest();
  store.ping = async () => {
    throw notExecuted();
  };
  await expect(manager.ping()).rejects.toThrow();
};

const pages: Record<string, ReadonlyMap<string, ReadonlySet<string>>> = {};

beforeAll(async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meters = new MeterProvider({ readers: [exporter] });
  const instrumentation = new RedisLockInstrumentation();
  instrumentation.setMeterProvider(meters);
  const registry = new Registry();
  recipe()(registry);
  try {
    await useLocks();
    const { resourceMetrics } = await exporter.collect();
    pages['OpenTelemetry'] = samplesOf(new PrometheusSerializer().serialize(resourceMetrics));
    pages['the recipe'] = samplesOf(await registry.metrics());
  } finally {
    instrumentation.disable();
    await meters.shutdown();
  }
});

/** The recipe of the page about telemetry, which subscribes until the test is over. */
const stops: (() => void)[] = [];
const recipe = (): ((registry: Registry) => void) => {
  const code = codeBlocks(readFromRoot('docs/operations/telemetry.md'), 'ts').find((one) =>
    one.includes('measureLocks'),
  )!;
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
  const exports: { measureLocks?: (registry: Registry) => void } = {};
  const subscribe: typeof diagnosticsChannel.subscribe = (name, listener) => {
    diagnosticsChannel.subscribe(name, listener);
    stops.push(() => void diagnosticsChannel.unsubscribe(name, listener));
  };
  const modules: Record<string, unknown> = {
    'node:diagnostics_channel': { subscribe },
    'prom-client': promClient,
  };
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  new Function('require', 'exports', outputText)((name: string) => modules[name], exports);
  return exports.measureLocks!;
};
afterAll(() => stops.forEach((stop) => stop()));

describe.each(['OpenTelemetry', 'the recipe'])('the dashboard, with the metrics of %s', (source) => {
  it.each(dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr }))))(
    'finds the metrics and labels of "$title" in $expr',
    ({ expr }) => {
      const page = pages[source]!;
      const names = selected(expr);
      expect(names).toHaveLength(1);
      const found = [...page.keys()].filter((name) => new RegExp(`^(?:${names[0]!})$`).test(name));
      expect(found).toHaveLength(1);
      // The unnamed module has no label `service`, and in Prometheus that is the same as an empty one.
      const wanted = labelsOf(expr).filter((name) => name !== 'redis_lock_service');
      expect(wanted.filter((name) => !page.get(found[0]!)!.has(name))).toEqual([]);
    },
  );

  it('shows every metric', () => {
    const patterns = dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => selected(expr)));
    const names = [...pages[source]!.keys()].filter((name) => !/_(?:sum|count)$/.test(name));
    expect(names).toHaveLength(7);
    expect(names.filter((name) => !patterns.some((one) => new RegExp(`^(?:${one})$`).test(name)))).toEqual(
      [],
    );
  });
});

it('the recipe has the names of OpenTelemetry, with the unit of the histograms, and the same labels', () => {
  const [sdk, recipe] = [pages['OpenTelemetry']!, pages['the recipe']!];
  const withUnit = (name: string): string => name.replace(/_time(?=_)/, '_time_seconds');
  expect([...sdk.keys()].map(withUnit).sort()).toEqual([...recipe.keys()].sort());
  for (const [name, labels] of sdk) {
    const ours = [...labels].filter((label) => !label.startsWith('otel_'));
    const theirs = [...recipe.get(withUnit(name))!].filter((label) => label !== 'redis_lock_service');
    expect([name, ...ours.sort()]).toEqual([name, ...theirs.sort()]);
  }
});
