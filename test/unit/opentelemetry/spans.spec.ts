import { setImmediate } from 'node:timers/promises';
import { context, diag, DiagLogLevel, SpanKind, SpanStatusCode, trace, type Span } from '@opentelemetry/api';
import { Locked, type LockService } from 'nest-redis-lock';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { coreUnderTest } from '../../support/core/core-under-test.js';
import { notExecuted } from '../../support/core/scripted-store.js';
import { Sdk } from './sdk.js';

let locks: LockService;
let sdk: Sdk;
let instrumentation: RedisLockInstrumentation;

const instrument = (options?: { keys?: boolean }): void => {
  instrumentation = new RedisLockInstrumentation(options);
  instrumentation.setTracerProvider(sdk.tracers);
  instrumentation.setMeterProvider(sdk.meters);
};

beforeEach(() => {
  locks = createTestingLocks('memory', { waitMs: 0 });
  sdk = new Sdk();
  sdk.start();
  instrument();
});
afterEach(async () => {
  instrumentation.disable();
  await sdk.stop();
});

/** A span that a client of a database makes: a child of the active one. */
const query = async (name = 'query'): Promise<void> => {
  const span = sdk.tracer.startSpan(name);
  await setImmediate();
  span.end();
};

const request = <T>(work: (span: Span) => Promise<T>): Promise<T> =>
  sdk.tracer.startActiveSpan('request', async (span) => {
    try {
      return await work(span);
    } finally {
      span.end();
    }
  });

class Shop {
  @Locked('order:<<0>>')
  async order(_id: string): Promise<void> {
    await query('first');
    await query('second');
  }
}

const active = (): Span | undefined => trace.getSpan(context.active());

describe.each(['with', 'without'])('a span of holding, %s attach of the context manager', (way) => {
  beforeEach(() => {
    if (way === 'without') sdk.withoutAttach();
  });

  it('is the parent of the work inside withLock, also after an await and in a nested lock', async () => {
    await request(() =>
      locks.withLock('a', { label: 'outer' }, async () => {
        await query('before');
        await locks.withLock('b', { label: 'inner' }, () => query());
        await query('after');
      }),
    );
    expect(sdk.tree()).toEqual([
      [
        'request',
        'lock.acquire outer',
        ['lock.hold outer', 'before', 'lock.acquire inner', ['lock.hold inner', 'query'], 'after'],
      ],
    ]);
  });

  it('is the parent of the work inside @Locked, and has the template as its label', async () => {
    await request(() => bindLocks(new Shop(), locks).order('7'));
    expect(sdk.tree()).toEqual([
      ['request', 'lock.acquire order:<<0>>', ['lock.hold order:<<0>>', 'first', 'second']],
    ]);
  });

  it('is the parent of the work of lease.run, and of a section that is not asynchronous', async () => {
    await using lease = await locks.acquire('a');
    await lease.run(() => query('run'));
    await locks.withLock('b', () => sdk.tracer.startSpan('sync').end());
    expect(sdk.tree()).toEqual([
      'lock.acquire acquire',
      ['lock.hold acquire', 'run'],
      'lock.acquire withLock',
      ['lock.hold withLock', 'sync'],
    ]);
  });

  it('is active neither for the caller nor after the call', async () => {
    await request(async (span) => {
      await using lease = await locks.acquire('a');
      const running = lease.run(() => query('inside'));
      expect(active()).toBe(span);
      await query('beside');
      await running;
      expect(active()).toBe(span);
      await expect(locks.withLock('b', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
      expect(active()).toBe(span);
    });
    expect(active()).toBeUndefined();
    const parent = sdk.span('beside').parentSpanContext;
    expect(parent?.spanId).toBe(sdk.span('request').spanContext().spanId);
  });

  it('is not active in what the library does after the section, such as the event of the release', async () => {
    const seen: (Span | undefined)[] = [];
    locks.on('released', () => seen.push(active()));
    await request(async (span) => {
      await locks.withLock('a', () => undefined);
      await locks.withLock('b', () => query());
      expect(seen).toEqual([span, span]);
    });
  });

  it('is active neither in other calls of the same time nor in the next caller of a hand-off', async () => {
    await Promise.all(
      ['one', 'two', 'three'].map((label) =>
        sdk.tracer.startActiveSpan(label, async (span) => {
          await locks.withLock('k', { label, waitMs: 10_000 }, () => query(`query of ${label}`));
          span.end();
        }),
      ),
    );
    expect(sdk.tree()).toEqual(
      ['one', 'two', 'three'].map((label) => [
        ...[label, `lock.acquire ${label}`],
        [`lock.hold ${label}`, `query of ${label}`],
      ]),
    );
  });

  it('of two instrumentations is active inside only, and the span of the request is active again after it', async () => {
    const other = new RedisLockInstrumentation();
    other.setTracerProvider(sdk.tracers);
    try {
      await request(async (span) => {
        const work = locks.withLock('a', () => query());
        expect(active()).toBe(span);
        await work;
        const lease = await locks.acquire('b');
        const running = lease.run(() => query('other'));
        expect(active()).toBe(span);
        await running;
        await lease.release();
        expect(active()).toBe(span);
      });
    } finally {
      other.disable();
    }
    const holds = sdk.spans().filter(({ name }) => name === 'lock.hold withLock');
    expect(holds.map((span) => span.parentSpanContext?.spanId)).toContain(
      sdk.span('request').spanContext().spanId,
    );
    expect(holds.map((span) => span.spanContext().spanId)).toContain(
      sdk.span('query').parentSpanContext?.spanId,
    );
  });

  it('stops being active when the instrumentation is disabled inside', async () => {
    await request(async (span) => {
      await using lease = await locks.acquire('a');
      const running = lease.run(async () => {
        instrumentation.disable();
        await setImmediate();
      });
      expect(active()).toBe(span);
      await running;
    });
  });

  it('ends with the outcome lost, as an error, when the lock was lost', async () => {
    await locks.withLock('k', () => locks.forceUnlock('k'));
    const { attributes, status } = sdk.span('lock.hold withLock');
    expect(attributes['redis_lock.outcome']).toBe('lost');
    expect(status).toEqual({ code: SpanStatusCode.ERROR, message: 'LOCK_LOST' });
  });

  it('is no error when the work fails: that is the error of another span', async () => {
    await expect(locks.withLock('k', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    const { attributes, status, events } = sdk.span('lock.hold withLock');
    expect([attributes['redis_lock.outcome'], status.code, events]).toEqual([
      'released',
      SpanStatusCode.UNSET,
      [],
    ]);
  });
});

describe('the attributes of a span', () => {
  it('are label, kind, outcome and fencing token, and no key', async () => {
    const token = await locks.withLock('user:7', { label: 'profile' }, (lease) => lease.fencingToken);
    const common = { 'redis_lock.label': 'profile', 'redis_lock.kind': 'exclusive' };
    const ended = { 'redis_lock.fencing_token': token };
    const [acquire, hold] = ['lock.acquire profile', 'lock.hold profile'].map((name) => sdk.span(name));
    expect(acquire!.attributes).toEqual({ ...common, ...ended, 'redis_lock.outcome': 'acquired' });
    expect(hold!.attributes).toEqual({ ...common, ...ended, 'redis_lock.outcome': 'released' });
    expect([acquire!.kind, hold!.kind]).toEqual([SpanKind.INTERNAL, SpanKind.INTERNAL]);
  });

  it('are without a token for a read lock, a permit and several keys', async () => {
    await locks.withLock('a', { mode: 'read', label: 'read' }, () => undefined);
    await locks.permits('b', { permits: 2 }).withPermit(() => undefined);
    await locks.withLock(['c', 'd'], { label: 'several' }, () => undefined);
    expect(sdk.spans()).toHaveLength(6);
    expect(sdk.spans().filter(({ attributes }) => 'redis_lock.fencing_token' in attributes)).toEqual([]);
  });

  it('have the keys with the option keys, as redactKey shows them', async () => {
    instrumentation.disable();
    instrument({ keys: true });
    const redacting = createTestingLocks('memory', { redactKey: (key) => key.replace(/\d+/, '*') });
    await redacting.withLock(['user:7', 'user:8'], () => undefined);
    for (const { attributes } of sdk.spans())
      expect(attributes['redis_lock.keys']).toEqual(['user:*', 'user:*']);
    expect(sdk.spans()).toHaveLength(2);
  });

  it('have the code of a lock that was taken as outcome, without an error', async () => {
    await using _holder = await locks.acquire('user:7');
    expect(await locks.tryAcquire('user:7', { label: 'try' })).toBeNull();
    const { attributes, status, events } = sdk.span('lock.acquire try');
    expect(attributes['redis_lock.outcome']).toBe('LOCK_TAKEN');
    expect([status.code, events]).toEqual([SpanStatusCode.UNSET, []]);
  });

  it('have an error without the key when the store fails, and none when the caller gives up', async () => {
    const { manager, store, call } = coreUnderTest({ waitMs: 1_000 });
    const failing = manager.acquire(['user:7'], call({ label: 'failing' }));
    const failure = expect(failing).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await store.next('acquire').fail(notExecuted('NOAUTH for user:7'));
    await failure;
    const signal = AbortSignal.abort();
    await expect(locks.acquire('user:7', { signal, label: 'aborted' })).rejects.toMatchObject({
      code: 'LOCK_ABORTED',
    });
    const failed = sdk.span('lock.acquire failing');
    expect(failed.status).toEqual({ code: SpanStatusCode.ERROR, message: 'LOCK_STORE_FAILED' });
    expect(failed.attributes['redis_lock.outcome']).toBe('LOCK_STORE_FAILED');
    expect(failed.events).toEqual([]);
    expect(JSON.stringify([failed.attributes, failed.status])).not.toContain('user:7');
    expect(sdk.span('lock.acquire aborted').status.code).toBe(SpanStatusCode.UNSET);
  });
});

describe('an instrumentation', () => {
  it('makes no spans after disable, and makes them again after enable', async () => {
    instrumentation.disable();
    await locks.withLock('k', () => undefined);
    expect(sdk.spans()).toEqual([]);
    instrumentation.enable();
    instrumentation.enable();
    await locks.withLock('k', () => undefined);
    expect(sdk.spans()).toHaveLength(2);
  });

  it('has the shape that the SDK asks for, and enabled as it was given', () => {
    expect(instrumentation.instrumentationName).toBe('nest-redis-lock');
    expect(instrumentation.getConfig()).toEqual({ enabled: true, keys: false });
    instrumentation.setConfig({ keys: true });
    expect(instrumentation.getConfig()).toEqual({ enabled: true, keys: true });
    const later = new RedisLockInstrumentation({ enabled: false, keys: undefined });
    expect(later.getConfig()).toEqual({ enabled: false, keys: false });
  });

  it.each([
    [{ keys: 'yes' }, 'keys must be true or false, but is "yes".'],
    [{ enabled: 1 }, 'enabled must be true or false, but is 1.'],
    [{ key: true }, 'key is no option of RedisLockInstrumentation. Did you mean keys?'],
    [
      'keys',
      'The options of RedisLockInstrumentation must be an object such as { keys: true }, but is "keys".',
    ],
  ])('refuses %j by name', (options, message) => {
    expect(() => new RedisLockInstrumentation(options as never)).toThrow(message);
    expect(() => instrumentation.setConfig(options as never)).toThrow(message);
  });

  it('leaves the lock alone without an SDK', async () => {
    await sdk.stop();
    const bare = new RedisLockInstrumentation();
    try {
      expect(await locks.withLock('k', async () => 'done')).toBe('done');
    } finally {
      bare.disable();
    }
  });

  it('reports a provider that throws once, and harms neither the process nor the lock', async () => {
    const reports: unknown[] = [];
    const log = (): void => undefined;
    diag.setLogger(
      { error: (...report) => reports.push(report), warn: log, info: log, debug: log, verbose: log },
      { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
    );
    const uncaught: unknown[] = [];
    const onUncaught = (error: unknown): void => void uncaught.push(error);
    process.on('uncaughtException', onUncaught);
    try {
      const broken = (): never => {
        throw new Error('broken');
      };
      instrumentation.setTracerProvider({ getTracer: broken });
      instrumentation.setMeterProvider({ getMeter: broken });
      expect(await locks.withLock('k', async () => 'done')).toBe('done');
      await setImmediate();
    } finally {
      process.off('uncaughtException', onUncaught);
      diag.disable();
    }
    expect(uncaught).toEqual([]);
    expect(reports).toHaveLength(1);
  });
});
