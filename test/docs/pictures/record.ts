import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { createLockService, type LockService } from 'nest-redis-lock';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';
import { RedisServer } from '../../support/servers/redis-server.js';

const SAMPLES = 60;
const EVERY_MS = 10_000;
const TICK_MS = 100;
const WAIT_MS = 1_000;
/** Shares of the run: when the server dies, when it is back, and when an operator ends a hold. */
const [DIES, IS_BACK, UNLOCKS] = [0.6, 0.617, 0.8];

const between = (least: number, most: number): number => least + Math.random() * (most - least);
/** A lock that is taken, or a server that is down, is a number of the record. */
const counted = (call: Promise<unknown>): void => void call.catch(() => undefined);

const CALLS = [
  { label: 'order:<<id>>', keys: 12, mostInATick: 4, workMs: [20, 120] },
  { label: 'sku:<<id>>', keys: 3, mostInATick: 4, workMs: [60, 180] },
] as const;

/** Starts the calls of one tick. They come in a wave of two minutes. */
const callAll = (locks: LockService, tick: number): void => {
  const wave = 1 + Math.sin((tick * TICK_MS * 2 * Math.PI) / 120_000);
  for (const { label, keys, mostInATick, workMs } of CALLS) {
    for (let calls = Math.round(between(0, (mostInATick * wave) / 2)); calls > 0; calls--) {
      const key = label.replace('<<id>>', String(Math.floor(between(0, keys))));
      counted(locks.withLock(key, { label, waitMs: WAIT_MS }, () => sleep(between(workMs[0], workMs[1]))));
    }
  }
};

/**
 * Records the metrics of ten minutes into a file: one process, locks in a real Redis server, the instrumentation of the
 * package, a sample every 10 s. The server is killed once and comes back empty, and a hold is ended by force. Each number
 * is the change since the sample before.
 */
export const record = async (file: string): Promise<void> => {
  await using server = await RedisServer.start();
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meters = new MeterProvider({ readers: [exporter] });
  const instrumentation = new RedisLockInstrumentation();
  instrumentation.setMeterProvider(meters);
  const locks = await createLockService({ redis: server.url, watchdogMs: 6_000, shutdownGraceMs: 0 });
  const rows = new Map<string, number[]>();
  const last = new Map<string, number>();
  const sample = async (at: number): Promise<void> => {
    const page = new PrometheusSerializer().serialize((await exporter.collect()).resourceMetrics);
    for (const [, name = '', value] of page.matchAll(/^(redis_lock_\w+\{.*\}) (\d+)$/gm)) {
      if (/^\w+_(sum|count)\{/.test(name)) continue;
      const series = name.replace(/,?otel_scope_\w+="[^"]*"/g, '').replace('{,', '{');
      const row = rows.get(series) ?? Array.from({ length: SAMPLES }, () => 0);
      row[at] = Number(value) - (last.get(series) ?? 0);
      rows.set(series, row);
      last.set(series, Number(value));
    }
  };
  const ticks = (SAMPLES * EVERY_MS) / TICK_MS;
  const things = new Map<number, () => Promise<unknown>>([
    [Math.round(ticks * DIES), () => server.kill('SIGKILL')],
    [Math.round(ticks * IS_BACK), () => server.restart()],
    [
      Math.round(ticks * UNLOCKS) + 10,
      () => Promise.all([0, 1, 2].map((key) => locks.forceUnlock(`sku:${key}`))),
    ],
  ]);
  const began = performance.now();
  for (let tick = 0; tick < ticks; tick++) {
    callAll(locks, tick);
    void things.get(tick)?.();
    await sleep(Math.max(0, began + (tick + 1) * TICK_MS - performance.now()));
    if ((tick + 1) % (EVERY_MS / TICK_MS) === 0) await sample((tick + 1) / (EVERY_MS / TICK_MS) - 1);
  }
  await locks.close();
  await meters.shutdown();
  const changes = [...rows].filter(([, row]) => row.some((value) => value !== 0)).sort();
  const lines = Object.fromEntries(changes.map(([series, row]) => [series, row.join(' ')]));
  await writeFile(file, `${JSON.stringify({ everyS: EVERY_MS / 1_000, changes: lines }, undefined, 2)}\n`);
};
