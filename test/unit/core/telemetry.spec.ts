import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  Locked,
  withLocks,
  type LockAcquireMessage,
  type LockHoldMessage,
  type LockSectionMessage,
  type LockService,
  type LockStoreMessage,
} from 'nest-redis-lock';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';
import { coreUnderTest } from '../../support/core/core-under-test.js';
import { notExecuted } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const ACQUIRE = 'nest-redis-lock:acquire';
const SECTION = 'nest-redis-lock:section';
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

type Message = LockAcquireMessage & LockSectionMessage;

let locks: LockService;
let stops: (() => void)[];

beforeEach(() => {
  locks = createTestingLocks('memory', { waitMs: 0 });
  stops = [];
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const listen = (name: string, listener: (message: never) => void): void => {
  const onMessage = (message: unknown): void => listener(message as never);
  subscribe(name, onMessage);
  stops.push(() => unsubscribe(name, onMessage));
};

/** Events of both tracing channels, in order; and the messages. */
const traced = (...names: string[]): { events: string[]; messages: Message[] } => {
  const [events, messages]: [string[], Message[]] = [[], []];
  for (const name of names) {
    for (const event of EVENTS) {
      listen(`tracing:${name}:${event}`, (message: Message) => {
        events.push(`${name.slice(name.indexOf(':') + 1)} ${event}`);
        messages.push(message);
      });
    }
  }
  return { events, messages };
};

const holds = (): string[] => {
  const events: string[] = [];
  for (const which of ['began', 'ended']) {
    listen(`nest-redis-lock:hold-${which}`, ({ key, kind, label, lost, heldMs }: LockHoldMessage) => {
      const time = typeof heldMs === 'number' ? ' ms' : '';
      events.push(`${which} ${key} ${kind} ${label}${time}${lost ? ` ${lost}` : ''}`);
    });
  }
  return events;
};

class Shop {
  @Locked('order:<<0>>', { onBusy: 'skip' })
  async order(_id: string): Promise<string | undefined> {
    return 'done';
  }
}

describe('the tracing channels', () => {
  it('trace a call that acquires, and its section inside the lock', async () => {
    const { events, messages } = traced(ACQUIRE, SECTION);
    expect(await bindLocks(new Shop(), locks).order('7')).toBe('done');
    const trace = (of: string): string[] =>
      ['start', 'end', 'asyncStart', 'asyncEnd'].map((e) => `${of} ${e}`);
    expect(events).toEqual([...trace('acquire'), ...trace('section')]);
    const [acquire, section] = [messages[0]!, messages[4]!];
    expect(new Set(messages)).toEqual(new Set([acquire, section]));
    const common = { keys: ['order:7'], kind: 'exclusive', label: 'order:<<0>>', service: undefined };
    expect(acquire).toMatchObject({ ...common, waitMs: 0 });
    expect(section).toMatchObject(common);
    expect(acquire.result).toBe(section.lease);
  });

  it('have an error for a lock that is taken, also where the call does not throw', async () => {
    await using _holder = await locks.acquire('order:7');
    const { events, messages } = traced(ACQUIRE, SECTION);
    expect(await locks.tryAcquire('order:7')).toBeNull();
    expect(await locks.tryWithLock('order:7', () => 'ran')).toEqual({ ran: false });
    expect(await bindLocks(new Shop(), locks).order('7')).toBeUndefined();
    const failed = ['start', 'end', 'error', 'asyncStart', 'asyncEnd'].map((event) => `acquire ${event}`);
    expect(events).toEqual([...failed, ...failed, ...failed]);
    expect(messages.every(({ error }) => (error as { code?: string }).code === 'LOCK_TAKEN')).toBe(true);
  });

  it('have the error of a section, thrown in either way, which reaches the caller as it is', async () => {
    const { messages } = traced(SECTION);
    const failure = new Error('the work failed');
    const fail = (): never => {
      throw failure;
    };
    await expect(locks.withLock('k', fail)).rejects.toBe(failure);
    await expect(locks.withLock('k', async () => Promise.reject(failure))).rejects.toBe(failure);
    await using lease = await locks.acquire('k');
    await expect(lease.run(fail)).rejects.toBe(failure);
    expect(messages.filter((_, i) => i % 5 === 4).map(({ error }) => error)).toEqual([
      failure,
      failure,
      failure,
    ]);
  });

  it('bind a store, so that a span is the parent of what runs inside', async () => {
    const storage = new AsyncLocalStorage<string>();
    const channels = [ACQUIRE, SECTION].map((name) => tracingChannel<string, object>(name));
    for (const [i, { start }] of channels.entries()) {
      start.bindStore(
        storage,
        () => `${storage.getStore() ?? 'request'} > ${i === 0 ? 'acquire' : 'section'}`,
      );
      stops.push(() => void start.unbindStore(storage));
    }
    const inside = await locks.withLock('k', async (outer) => {
      await settled();
      const nested = await locks.withLock('k', { inside: outer }, () => storage.getStore());
      return [storage.getStore(), nested];
    });
    expect(inside).toEqual(['request > section', 'request > section > section']);
    expect(storage.getStore()).toBeUndefined();
  });

  it('trace each lock of withLocks, and each call on several keys once', async () => {
    const { messages } = traced(ACQUIRE);
    const other = createTestingLocks();
    await withLocks(
      [locks, other].map((service) => ({ service, key: 'k' })),
      () => undefined,
    );
    await locks.withLock(['a', { key: 'b', mode: 'read' }], { mode: 'write' }, () => undefined);
    const started = messages.filter((_, i) => i % 4 === 0);
    expect(started.map(({ keys, kind, label }) => [...keys, kind, label].join(' '))).toEqual([
      ...['k exclusive withLocks', 'k exclusive withLocks', 'a b write withLock'],
    ]);
  });

  it('publish nothing to a subscriber that has left, and do not disturb calls in progress', async () => {
    const { events } = traced(ACQUIRE, SECTION);
    await locks.withLock('k', () => {
      for (const stop of stops.splice(0)) stop();
    });
    expect(events).toEqual([
      ...['start', 'end', 'asyncStart', 'asyncEnd'].map((event) => `acquire ${event}`),
      'section start',
    ]);
    await locks.withLock('k', () => undefined);
    expect(events).toHaveLength(5);
  });
});

describe('the channels of holds', () => {
  it('publish the beginning and the end of each hold, with one message for both', async () => {
    const messages: unknown[] = [];
    for (const name of ['began', 'ended']) {
      listen(`nest-redis-lock:hold-${name}`, (message) => messages.push(message));
    }
    const events = holds();
    await locks.withLock(['a', 'b'], (inside) => locks.withLock('a', { inside }, () => undefined));
    expect(events).toEqual([
      ...['began a exclusive withLock', 'began b exclusive withLock'],
      ...['ended a exclusive withLock ms', 'ended b exclusive withLock ms'],
    ]);
    expect([messages[2], messages[3]]).toEqual([messages[0], messages[1]]);
    expect(messages[2]).toBe(messages[0]);
  });

  it('publish each holder of a hand-off, and why a lock was lost', async () => {
    const events = holds();
    const first = await locks.acquire('k', { label: 'first' });
    const second = locks.acquire('k', { label: 'second', waitMs: 1_000 });
    await first.release();
    const lease = await second;
    await locks.forceUnlock('k');
    await lease.release();
    expect(events).toEqual([
      ...['began k exclusive first', 'ended k exclusive first ms'],
      ...['began k exclusive second', 'ended k exclusive second ms force-unlocked'],
    ]);
  });

  it('publish the end of a hold that began before there was a subscriber', async () => {
    const lease = await locks.acquire('k');
    const events = holds();
    await lease.release();
    expect(events).toEqual(['ended k exclusive acquire ms']);
  });
});

describe('the channel of the store', () => {
  it('publishes the beginning and the end of an outage', async () => {
    const messages: LockStoreMessage[] = [];
    listen('nest-redis-lock:store', (message: LockStoreMessage) => messages.push(message));
    const { manager, store, runtime } = coreUnderTest();
    const pings = [notExecuted(), undefined];
    store.ping = async () => {
      const failure = pings.shift();
      if (failure) throw failure;
    };
    await expect(manager.ping()).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await runtime.pass(250);
    await manager.ping();
    expect(messages).toEqual([
      { up: false, service: undefined, cause: expect.any(Error) as Error },
      { up: true, service: undefined, downMs: 250 },
    ]);
  });
});
