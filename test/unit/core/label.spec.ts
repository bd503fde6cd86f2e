import 'reflect-metadata';
import { beforeEach, describe, expect, it } from 'vitest';
import { Limited, Locked, withLocks, type LockEvents, type LockService } from 'nest-redis-lock';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';
import { deferred, until } from '../../support/async.js';

let locks: LockService;

beforeEach(() => {
  locks = createTestingLocks('memory', { waitMs: 0 });
});

const NAMES = [
  'acquired',
  'busy',
  'waiting',
  'slow-hold',
  'released',
  'lost',
  'revocation-requested',
] as const;

/** Event, key, kind and label of all events. */
const recorded = (of = locks): string[] => {
  const events: string[] = [];
  for (const name of NAMES) {
    of.on(name, ({ key, kind, label }: LockEvents[typeof name]) => {
      events.push(`${name} ${key} ${kind} ${label}`);
    });
  }
  return events;
};

const labelNow = (): string | undefined => locks.held()[0]?.label;

class Shop {
  @Locked('order:<<0>>')
  async template(_id: string): Promise<unknown> {
    return labelNow();
  }
  @Locked(['a:<<0>>', { key: 'b', mode: 'read' }])
  async several(_id: string): Promise<unknown> {
    return labelNow();
  }
  @Locked((id: string) => `f:${id}`)
  async byFunction(_id: string): Promise<unknown> {
    return labelNow();
  }
  @Locked(`long:${'😀'.repeat(60)}`)
  async long(): Promise<unknown> {
    return labelNow();
  }
  @Locked('order:<<0>>', { label: 'orders' })
  async own(_id: string): Promise<unknown> {
    return labelNow();
  }
  @Locked('order:<<0>>', { label: undefined, onBusy: 'skip' })
  async none(_id: string): Promise<unknown> {
    return labelNow();
  }
  @Limited('crm:<<0>>', { permits: 2 })
  async limited(_id: string): Promise<unknown> {
    return labelNow();
  }
}

describe('the label of a call', () => {
  it('is the template of a decorator, Class.method for a key function, unless the option is given', async () => {
    const shop = bindLocks(new Shop(), locks);
    expect(await shop.template('7')).toBe('order:<<0>>');
    expect(await shop.several('7')).toBe('a:<<0>>, b');
    expect(await shop.byFunction('7')).toBe('Shop.byFunction');
    expect(await shop.own('7')).toBe('orders');
    expect(await shop.none('7')).toBe('order:<<0>>');
    expect(await shop.limited('7')).toBe('crm:<<0>>');
  });

  it('is cut after 100 characters by default, and never in the middle of one', async () => {
    const label = (await bindLocks(new Shop(), locks).long()) as string;
    expect(label).toMatch(/^long:(😀)+.?…$/u);
    expect(label.length).toBeLessThanOrEqual(100);
    expect(label.isWellFormed()).toBe(true);
  });

  it('is the name of the method by hand, unless the option is given', async () => {
    const permits = locks.permits('p', { permits: 1 });
    const labels = [
      await locks.withLock('k', labelNow),
      await locks.withLock('k', {}, labelNow),
      await locks.tryWithLock('k', labelNow),
      await permits.withPermit(labelNow),
      await withLocks([{ service: locks, key: 'k' }], labelNow),
      await locks.withLock('k', { label: 'own' }, labelNow),
    ];
    for (const acquire of [
      () => locks.acquire('k'),
      () => locks.tryAcquire('k'),
      () => permits.acquire(),
      () => permits.tryAcquire(),
      () => permits.tryAcquire({ label: 'mine' }),
    ]) {
      await using _lease = await acquire();
      labels.push(labelNow());
    }
    expect(labels).toEqual([
      ...['withLock', 'withLock', { ran: true, value: 'tryWithLock' }, 'withPermit', 'withLocks', 'own'],
      ...['acquire', 'tryAcquire', 'permits().acquire', 'permits().tryAcquire', 'mine'],
    ]);
  });

  it('is in the events of a key, with the kind of its lock', async () => {
    const events = recorded();
    const lease = await locks.acquire([{ key: 'a', mode: 'read' }, 'b'], { label: 'first' });
    await locks.tryAcquire('b', { label: 'second', mode: 'fair' });
    await locks.tryAcquire([{ key: 'a', mode: 'write' }], { label: 'third' });
    await locks.revoke('b');
    await locks.forceUnlock('b');
    await lease.release();
    expect(events).toEqual([
      ...['acquired a read first', 'acquired b exclusive first'],
      ...['busy b fair second', 'busy a write third', 'revocation-requested b exclusive first'],
      ...['lost b exclusive first', 'released a read first'],
    ]);
  });

  it('is in the events of slow callers and holders', async () => {
    const slow = createTestingLocks('memory', { slowWaitMs: 1, slowHoldMs: 1 });
    const events = recorded(slow);
    const lease = await slow.acquire('k', { label: 'holder' });
    const waiting = slow.acquire('k', { label: 'waiter' });
    await until(() => events.length === 3);
    expect(events.slice(1).sort()).toEqual(['slow-hold k exclusive holder', 'waiting k exclusive waiter']);
    await lease.release();
    await (await waiting).release();
  });

  it('is the label of the next holder after a hand-off', async () => {
    const events = recorded();
    const first = await locks.acquire('k', { label: 'first', waitMs: 1_000 });
    const second = locks.acquire('k', { label: 'second', waitMs: 1_000 });
    const third = locks.acquire('k', { label: 'third', waitMs: 1_000 });
    const seen: unknown[] = [labelNow()];
    await first.release();
    await using lease = await second;
    seen.push(labelNow());
    await lease.release();
    await using last = await third;
    seen.push(labelNow(), last.owner === lease.owner);
    expect(seen).toEqual(['first', 'second', 'third', true]);
    await last.release();
    expect(events.map((event) => event.replace(' k exclusive', ''))).toEqual([
      ...['acquired first', 'released first', 'acquired second', 'released second'],
      ...['acquired third', 'released third'],
    ]);
  });

  it('is the label of the next holder, also while that still waits for another key', async () => {
    const [first, other] = [await locks.acquire('a', { label: 'first' }), await locks.acquire('b')];
    const next = locks.acquire('a', { label: 'next', waitMs: 1_000 });
    const second = locks.acquire(['a', 'b'], { label: 'second', waitMs: 1_000 });
    await first.release();
    const lease = await next;
    const { owner } = lease;
    await lease.release();
    expect(locks.held().map(({ key, label }) => `${key} ${label}`)).toEqual(['b acquire', 'a second']);
    await other.release();
    const last = await second;
    expect(last.ownerOf('a')).toBe(owner);
    await last.release();
  });

  it('is that of each reader that shares a hold, also when the hold is lost', async () => {
    const events = recorded();
    const [one, two, three] = await Promise.all(
      ['one', 'two', 'three'].map((label) => locks.acquire('k', { mode: 'read', waitMs: 1_000, label })),
    );
    expect(locks.held()).toHaveLength(1);
    await one!.release();
    expect(['two', 'three']).toContain(labelNow());
    await locks.forceUnlock('k');
    expect(events.slice(3).sort()).toEqual([
      ...['lost k read three', 'lost k read two', 'released k read one'],
    ]);
    expect([two!.loss?.label, three!.loss?.label]).toEqual(['two', 'three']);
  });

  it('is in the errors of its call, and not in their messages', async () => {
    const lease = await locks.acquire('k', { label: 'holder' });
    const errorOf = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
    const taken = await errorOf(locks.acquire('k', { label: 'some caller' }));
    expect(taken).toMatchObject({ code: 'LOCK_TAKEN', label: 'some caller' });
    expect((taken as Error).message).not.toContain('some caller');
    const gone = AbortSignal.abort();
    expect(await errorOf(locks.acquire('k', { label: 'aborted', signal: gone }))).toMatchObject({
      ...{ code: 'LOCK_ABORTED', label: 'aborted' },
    });
    const nested = locks.withLock('n', { label: 'outer' }, (outer) =>
      locks.withLock('n', { inside: outer, mode: 'write', label: 'inner' }, () => undefined),
    );
    expect(await errorOf(nested)).toMatchObject({ code: 'LOCK_NOT_REENTRANT', label: 'inner' });
    await locks.forceUnlock('k');
    expect(await errorOf(lease.run(() => undefined))).toMatchObject({ code: 'LOCK_LOST', label: 'holder' });
  });

  it('of a nested call is its own in errors, while held() shows that of the holder', async () => {
    const open = deferred();
    await locks.withLock('k', { label: 'outer' }, (outer) =>
      locks.withLock('k', { inside: outer, label: 'inner' }, async (lease) => {
        expect(labelNow()).toBe('outer');
        await locks.forceUnlock('k');
        expect(lease.loss?.label).toBe('inner');
        open.resolve();
      }),
    );
    await open.promise;
  });
});
