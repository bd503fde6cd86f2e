import { beforeEach, describe, expect, it } from 'vitest';
import { EntryKeeper } from '../../../lib/core/acquire/entry-keeper.js';
import { LockEventHub } from '../../../lib/core/report/lock-events.js';
import { queueEntryTermsOf, type Claim } from '../../../lib/core/seam/claim.js';
import type { StoreQueueEntry } from '../../../lib/core/seam/store-queue-entry.js';
import { Outages } from '../../../lib/core/outage/outages.js';
import { StoreHealth } from '../../../lib/core/context/store-health.js';
import type { ShownKey } from '../../../lib/core/util/shown-key.js';
import { StoreRequests } from '../../../lib/core/context/store-requests.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { newEntry, queued, stillQueued, waiterOf } from '../../support/core/queue-entries.js';
import { claimOn } from '../../support/core/queue-on.js';
import {
  QueueStore,
  notExecuted,
  ScriptedStore,
  unknown,
  type Request,
} from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

let runtime: VirtualRuntime;
let store: ScriptedStore;
let keeper: EntryKeeper;
let woken: string[];

const begin = (on: ScriptedStore = new QueueStore()): void => {
  runtime = new VirtualRuntime();
  store = on;
  woken = [];
  const log = new Log();
  const health = new StoreHealth(runtime, new LockEventHub(log), log, new Outages(runtime, 'process'));
  keeper = new EntryKeeper(
    new StoreRequests(store, runtime, health, { begin: () => undefined }, (key) => key as ShownKey),
    runtime,
  );
};

beforeEach(() => begin());

/** A place that is kept from this moment on. */
const kept = (key: string, position = 0, kind: 'exclusive' | 'fair' = 'exclusive'): StoreQueueEntry => {
  const { entry } = newEntry();
  const claim: Claim = { ...claimOn(key), kind, entryTerms: keeper.termsFor(30_000, 0) };
  const waiter = waiterOf({ entryFailed: () => woken.push(key) });
  entry.enqueued(claim, 30_000, queued(entry, position), runtime.now(), waiter);
  keeper.add(entry);
  return entry;
};

const many = (count: number): StoreQueueEntry[] => Array.from({ length: count }, (_, i) => kept(`k${i}`));

const next = (): Request<'keep'> => store.next('keep');

/** For how long the places are to live, as the request says. */
const livesFor = ({ claims }: Request<'keep'>) =>
  new Set(claims.map((claim) => queueEntryTermsOf(claim)?.aliveMs));

describe('the keeper of places', () => {
  it('does nothing while there is none, and ends with the last one', async () => {
    expect(runtime.due).toEqual([]);
    const [one, two] = [kept('a'), kept('b')];
    keeper.remove(one);
    expect(runtime.due).toHaveLength(1);
    keeper.remove(two);
    keeper.remove(two);
    expect(runtime.due).toEqual([]);
    await runtime.pass(10_000);
    expect(store.sent).toEqual([]);
    kept('c');
    expect(runtime.due).toEqual([runtime.now() + 1_000]);
  });

  it('keeps all of them with one timer and one request, once a second', async () => {
    many(10);
    expect(runtime.due).toHaveLength(1);
    for (let second = 0; second < 3; second++) {
      await runtime.pass(999);
      expect(store.unanswered).toEqual([]);
      await runtime.pass(1);
      expect(next().claims).toHaveLength(10);
      expect(runtime.due).toHaveLength(1);
      await next().reply(Array.from({ length: 10 }, () => stillQueued()));
    }
  });

  it('asks for a crowd in pieces, so that the event loop turns between them', async () => {
    many(2_500);
    await runtime.pass(1_001);
    const sizes: number[] = [];
    for (; store.unanswered.length > 0; await next().reply([])) sizes.push(next().claims.length);
    expect(sizes).toEqual([500, 500, 500, 500, 500]);
  });

  it('goes on while an answer is late', async () => {
    kept('a');
    await runtime.pass(3_000);
    expect(store.count('keep')).toBe(3);
  });

  it('has a place live for three periods and a time-out', async () => {
    expect(keeper.termsFor(30_000, 7)).toEqual({ aliveMs: 5_000, provisionalLeaseMs: 10_000, tokens: 7 });
    kept('a');
    await runtime.pass(1_000);
    expect(livesFor(next())).toEqual(new Set([5_000]));
  });

  it.each([
    [30_000, 10_000],
    [5_000, 1_666],
    [2, 1],
  ])('has a hold that it is granted by message last for a third of a watchdog of %s ms', (watchdogMs, ms) => {
    expect(keeper.termsFor(watchdogMs, 0).provisionalLeaseMs).toBe(ms);
  });

  it('asks less often with many places, and has them live longer', async () => {
    many(20_000);
    // The timer of the first place runs already.
    await runtime.pass(1_000);
    expect(livesFor(next())).toEqual(new Set([8_000]));
    await runtime.pass(1);
    while (store.unanswered.length > 0) await next().reply([]);
    await runtime.pass(1_998);
    expect(store.unanswered).toEqual([]);
    await runtime.pass(1);
    expect(store.unanswered).not.toEqual([]);
  });

  it('asks less often far behind in a line, as the store has told it', async () => {
    kept('a');
    await runtime.pass(1_000);
    await next().reply([stillQueued(1_500)]);
    await runtime.pass(1_000);
    expect(livesFor(next())).toEqual(new Set([6_500]));
    await next().reply([stillQueued(10)]);
    await runtime.pass(1_499);
    expect(store.unanswered).toEqual([]);
    await runtime.pass(1);
    expect(livesFor(next())).toEqual(new Set([5_000]));
  });

  it('has no place live for longer than 8 s, however far behind it stands', async () => {
    kept('a', 4_000);
    await runtime.pass(2_000);
    expect(livesFor(next())).toEqual(new Set([8_000]));
  });

  it('asks once a second of places of which each caller has one, however far behind they stand', async () => {
    kept('a', 4_000, 'fair');
    await runtime.pass(1_000);
    expect(livesFor(next())).toEqual(new Set([5_000]));
  });

  it('tells each place what became of it, counted from the send', async () => {
    const [a, b, c] = [kept('a', 3), kept('b'), kept('c')] as const;
    await runtime.pass(1_000);
    const request = next();
    await runtime.pass(300);
    await request.reply([stillQueued(1), { status: 'held' }, { status: 'gone' }]);
    expect([a.queuedAt, a.position, a.outcome]).toEqual([2_000, 1, undefined]);
    expect([b.outcome, c.outcome]).toEqual([{ status: 'granted', validForMs: 0 }, { status: 'gone' }]);
    expect(woken, 'a place tells that by itself').toEqual([]);
  });

  it('wakes who waits at a place that could not be asked about, and the others stand as they do', async () => {
    const [a, b] = [kept('a'), kept('b')] as const;
    await runtime.pass(1_000);
    await next().reply([{ status: 'failed', cause: notExecuted() }, stillQueued()]);
    expect([woken, a.queuedAt, b.queuedAt]).toEqual([['a'], 1_000, 2_000]);
  });

  it.each([
    ['a failure of the store', unknown()],
    ['a bug in it', new TypeError('a bug')],
  ])('wakes all when nothing could be asked, and goes on: %s', async (_, failure) => {
    const [a] = many(3);
    await runtime.pass(1_000);
    await next().fail(failure);
    expect([woken, a!.outcome]).toEqual([['k0', 'k1', 'k2'], undefined]);
    await runtime.pass(1_000);
    expect(next().claims).toHaveLength(3);
  });

  it('leaves a place alone that was removed while it was asked about', async () => {
    const [a, b] = [kept('a'), kept('b')] as const;
    await runtime.pass(1_000);
    const request = next();
    keeper.remove(a);
    keeper.remove(b);
    await request.reply([{ status: 'gone' }, { status: 'failed', cause: unknown() }]);
    expect([a.outcome, b.outcome, woken]).toEqual([undefined, undefined, []]);
  });

  it('requests the state of one queue entry on demand, and refreshes it by that', async () => {
    const one = kept('a');
    await runtime.pass(400);
    const requesting = watched(keeper.request(one));
    await settled();
    expect(livesFor(next())).toEqual(new Set([5_000]));
    await next().reply([stillQueued(2, 700)]);
    expect([requesting.value, one.queuedAt, one.lookAgainAt]).toEqual([stillQueued(2, 700), 1_400, 2_100]);
    const failing = watched(keeper.request(one));
    const cause = notExecuted();
    await settled();
    await next().reply([{ status: 'failed', cause }]);
    expect(failing.error).toBe(cause);
  });

  it('requests the states of entries whose callers are woken together with one request for each kind', async () => {
    const entries = [kept('a', 3), kept('b', 1, 'fair'), kept('c')];
    const requesting = entries.map((entry) => watched(keeper.request(entry)));
    await settled();
    const sizes = store.unanswered.map(({ claims }) => claims.map(({ finalKey }) => finalKey));
    expect(sizes).toEqual([['a', 'c'], ['b']]);
    const cause = notExecuted();
    await next().reply([stillQueued(2), { status: 'failed', cause }]);
    await next().reply([{ status: 'held' }]);
    expect(requesting.map(({ value, error }) => value ?? error)).toEqual([
      stillQueued(2),
      { status: 'held' },
      cause,
    ]);
    expect([entries[0]!.position, entries[1]!.outcome?.status, woken]).toEqual([2, 'granted', []]);
  });

  it('reports an unchanged queue entry if the store needs no refresh, and replies', async () => {
    begin(new ScriptedStore());
    const one = kept('a', 2);
    const state = keeper.request(one);
    await settled();
    await store.next('inspect').reply(null);
    expect(await state).toEqual(stillQueued(2));
    await runtime.pass(5_000);
    expect([store.sent.length, woken, one.queuedAt]).toEqual([1, [], 1_000]);
  });

  it('can be stopped', async () => {
    many(2);
    keeper.stop();
    await runtime.pass(10_000);
    expect([store.sent, runtime.due]).toEqual([[], []]);
  });
});
