// With an SDK that traces, no command of the store may become a span inside the span of a lock: it would have the keys.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { context, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';
import { expect, it } from 'vitest';
import { newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

it('commands that contain a key are sent outside every span, also inside a lock that is traced', async () => {
  const { locks } = lab.open();
  const [key, inner] = [newKey(), newKey()];
  const exporter = new InMemorySpanExporter();
  const tracers = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  tracers.register();
  const instrumentation = new RedisLockInstrumentation();
  const seen: { readonly command: string; readonly inSpan: boolean }[] = [];
  const onCommand = (message: unknown): void => {
    const { command, args } = message as { command: string; args: readonly unknown[] };
    if (!String(args).includes(key) && !String(args).includes(inner)) return;
    seen.push({ command, inSpan: trace.getSpan(context.active()) !== undefined });
  };
  subscribe('tracing:ioredis:command:start', onCommand);
  try {
    await tracers.getTracer('app').startActiveSpan('request', async (request) => {
      await locks.withLock(key, async (lease) => {
        expect(trace.getSpan(context.active())).not.toBe(request);
        await lease.extend(60_000);
        await locks.withLock(inner, () => locks.inspect(inner));
      });
      request.end();
    });
  } finally {
    unsubscribe('tracing:ioredis:command:start', onCommand);
    instrumentation.disable();
    await tracers.shutdown();
    trace.disable();
    context.disable();
  }
  expect(seen.length).toBeGreaterThan(4);
  expect(seen.filter(({ inSpan }) => inSpan)).toEqual([]);
});
