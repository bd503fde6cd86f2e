import { beforeEach, describe, expect, it } from 'vitest';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { ExtendReply } from '../../../lib/core/seam/reply.js';
import { Hold } from '../../../lib/core/lease/hold.js';
import { LeaseKeeper } from '../../../lib/core/lease/lease-keeper.js';
import { LockEventHub } from '../../../lib/core/report/lock-events.js';
import type { ShownKey } from '../../../lib/core/util/shown-key.js';
import { StoreRequests } from '../../../lib/core/context/store-requests.js';
import { Outages } from '../../../lib/core/outage/outages.js';
import { StoreHealth } from '../../../lib/core/context/store-health.js';
import { Log } from '../../support/core/core-under-test.js';
import { claimOn, queueOn } from '../../support/core/queue-on.js';
import { ScriptedStore, unknown, type Request } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const WATCHDOG_MS = 30_000;
const PERIOD_MS = WATCHDOG_MS / 3;
const RETRY_MS = 1_000;

let runtime: VirtualRuntime;
let store: ScriptedStore;
let log: Log;
let keeper: LeaseKeeper;
let count: number;

/** A hold that was granted at this moment. */
const hold = (
  options: {
    renewed?: boolean;
    validForMs?: number;
    watchdogMs?: number;
    name?: string;
    permit?: boolean;
  } = {},
): Hold => {
  const key = options.name ?? `k${(count += 1)}`;
  const queue = queueOn(store, runtime);
  const lock = claimOn(key, `o-${key}`, WATCHDOG_MS);
  const claim: Claim = options.permit ? { ...lock, kind: 'permit', of: 1 } : lock;
  const now = runtime.now();
  const leaseMs = options.watchdogMs ?? WATCHDOG_MS;
  const watchdogMs = options.renewed === false ? undefined : leaseMs;
  const validForMs = options.validForMs ?? leaseMs;
  return new Hold({ key, label: 'test' }, queue, claim, watchdogMs, {
    token: 1,
    grantedAt: now,
    sentAt: now,
    validForMs,
  });
};

const kept = (options: Parameters<typeof hold>[0] = {}): Hold => {
  const one = hold(options);
  keeper.add(one);
  return one;
};

const held = (validForMs = WATCHDOG_MS): ExtendReply => ({ status: 'held', validForMs });
const renewal = (): Request<'extend'> => store.next('extend');

beforeEach(() => {
  runtime = new VirtualRuntime();
  store = new ScriptedStore();
  log = new Log();
  count = 0;
  const health = new StoreHealth(runtime, new LockEventHub(log), log, new Outages(runtime, 'process'));
  const requests = new StoreRequests(
    store,
    runtime,
    health,
    { begin: () => undefined },
    (key) => key as ShownKey,
  );
  keeper = new LeaseKeeper(requests, runtime, {
    slowHoldMs: Infinity,
    added: () => undefined,
    report: () => undefined,
  });
});

describe('renewal', () => {
  it('comes every third of the watchdog time, all holds in one batch', async () => {
    const holds = [kept(), kept(), kept()];
    await runtime.pass(PERIOD_MS - 1);
    expect(store.sent).toHaveLength(0);
    await runtime.pass(1);
    expect(renewal().claims.map(({ finalKey: key }) => key)).toEqual(holds.map(({ key }) => key));
    expect(
      renewal().claims.every(
        ({ leaseMs, tokens: fenceBlock }) => leaseMs === WATCHDOG_MS && fenceBlock === 0,
      ),
    ).toBe(true);
    await renewal().reply(holds.map(() => held()));
    expect(holds.map(({ validUntil }) => validUntil)).toEqual(holds.map(() => runtime.now() + WATCHDOG_MS));
    await runtime.pass(PERIOD_MS);
    expect(store.count('extend')).toBe(2);
  });

  it('asks for each kind by itself: what one is told does not wait for the other', async () => {
    const [lock, permit] = [kept(), kept({ permit: true })];
    await runtime.pass(PERIOD_MS);
    expect(store.unanswered.map(({ claims }) => claims.map(({ kind }) => kind))).toEqual([
      ['exclusive'],
      ['permit'],
    ]);
    const [ofLocks, ofPermits] = store.unanswered as readonly Request<'extend'>[];
    await ofPermits!.reply([{ status: 'lost' }]);
    expect([lock.state, permit.state]).toEqual(['held', 'lost']);
    await ofLocks!.reply([held()]);
    expect(lock.validUntil).toBe(runtime.now() + WATCHDOG_MS);
  });

  it('needs one timer for 10,000 holds, and adding one sets no further timer', () => {
    for (let i = 0; i < 10_000; i += 1) kept();
    expect(runtime.due).toHaveLength(1);
    expect(runtime.timersSet).toBe(1);
  });

  it('keeps holds alive for as long as they are kept, and no longer', async () => {
    const [stays, goes] = [kept(), kept()];
    for (let period = 0; period < 20; period += 1) {
      await runtime.pass(PERIOD_MS);
      if (period === 10) keeper.remove(goes);
      await renewal().reply(renewal().claims.map(() => held()));
    }
    expect(stays.state).toBe('held');
    expect(renewalsOf(goes)).toBe(11);
    expect(renewalsOf(stays)).toBe(20);
  });

  const renewalsOf = (one: Hold): number =>
    store.sent.filter(({ claims }) => claims.some(({ owner }) => owner === one.claim.owner)).length;

  it('leaves fixed leases alone, and notices their end', async () => {
    const fixed = kept({ renewed: false, validForMs: 700 });
    await runtime.pass(699);
    expect(fixed.state).toBe('held');
    await runtime.pass(1);
    expect([fixed.state, fixed.lossReason]).toEqual(['lost', 'expired']);
    expect(store.sent).toHaveLength(0);
    expect(runtime.due, 'nothing is kept, so nothing is to be done').toEqual([]);
  });

  it('a hold that comes in the middle of a period is renewed with the others, well before its end', async () => {
    const first = kept();
    await runtime.pass(PERIOD_MS - 10);
    const second = kept();
    await runtime.pass(10);
    expect(renewal().claims.map(({ finalKey: key }) => key)).toEqual([first.key, second.key]);
  });

  it('a renewal that is still under way is not sent again', async () => {
    kept();
    await runtime.pass(PERIOD_MS);
    await runtime.pass(PERIOD_MS);
    expect(store.count('extend')).toBe(1);
  });

  it('never believes in more than was asked for, though the store has more: its clock may have stepped back', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    const sentAt = runtime.now();
    await renewal().reply([held(120_000)]);
    expect(one.validUntil).toBe(sentAt + WATCHDOG_MS);
    expect(one.isSound(runtime.now())).toBe(true);
  });

  it('leaves a longer time that its holder asked for as it is', async () => {
    const one = kept();
    one.inStore.renew(runtime.now(), 120_000, 120_000, runtime.now());
    const until = one.validUntil;
    await runtime.pass(PERIOD_MS);
    await renewal().reply([held(120_000 - PERIOD_MS)]);
    expect(one.validUntil).toBe(until);
  });

  it('of holds with other leases comes every third of theirs, each kind in one batch', async () => {
    const [long, short, alsoShort] = [kept(), kept({ watchdogMs: 3_000 }), kept({ watchdogMs: 3_000 })];
    await runtime.pass(1_000);
    expect(renewal().claims.map(({ finalKey: key, leaseMs }) => [key, leaseMs])).toEqual([
      [short.key, 3_000],
      [alsoShort.key, 3_000],
    ]);
    await renewal().reply([held(3_000), held(3_000)]);
    keeper.remove(short);
    keeper.remove(alsoShort);
    await runtime.pass(PERIOD_MS - 1_000);
    expect(renewal().claims.map(({ finalKey: key }) => key)).toEqual([long.key]);
  });

  it('that is overdue is not put off by a lock that is taken before the timer comes', async () => {
    const one = kept();
    runtime.jump(PERIOD_MS + 5);
    kept();
    await runtime.pass(0);
    expect(renewal().claims.map(({ finalKey: key }) => key)).toContain(one.key);
  });

  it('counts validity from before the send, not from the answer', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    const sentAt = runtime.now();
    await runtime.pass(4_000);
    await renewal().reply([held()]);
    expect(one.validUntil).toBe(sentAt + WATCHDOG_MS);
  });
});

describe('a renewal that fails', () => {
  it('is unknown, not lost: it is tried again soon, until the lease is over', async () => {
    const one = kept();
    const endsAt = one.validUntil;
    await runtime.pass(PERIOD_MS);
    let tries = 0;
    while (one.state === 'held') {
      if (store.unanswered.length > 0) {
        tries += 1;
        await renewal().fail(unknown());
      }
      await runtime.pass(RETRY_MS / 2);
    }
    expect(one.lossReason).toBe('expired');
    expect(runtime.now() - endsAt).toBeLessThan(RETRY_MS);
    expect(tries).toBeGreaterThanOrEqual((2 * PERIOD_MS) / RETRY_MS - 1);
    expect(tries).toBeLessThanOrEqual((2 * PERIOD_MS) / RETRY_MS + 3);
  });

  it('is forgotten with the first success', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    await renewal().fail(unknown());
    await runtime.pass(RETRY_MS);
    await renewal().reply([held()]);
    expect(one.state).toBe('held');
    await runtime.pass(RETRY_MS * 3);
    expect(store.unanswered, 'no more retries').toHaveLength(0);
  });

  it('for one key only retries that key; its neighbours are renewed', async () => {
    const [good, bad, alsoGood] = [kept(), kept(), kept()];
    await runtime.pass(PERIOD_MS);
    const sentAt = runtime.now();
    await renewal().reply([held(), { status: 'failed', cause: new Error('WRONGTYPE') }, held()]);
    expect([good.validUntil, alsoGood.validUntil]).toEqual([sentAt + WATCHDOG_MS, sentAt + WATCHDOG_MS]);
    await runtime.pass(RETRY_MS);
    expect(renewal().claims.map(({ finalKey: key }) => key)).toEqual([bad.key]);
    expect(log.lines, 'one bad key is no outage').toEqual([]);
  });

  it('in flight over the end of the lease cannot bring it back', async () => {
    const one = kept();
    const losses: string[] = [];
    one.onLoss(() => losses.push(one.lossReason!));
    await runtime.pass(PERIOD_MS);
    const late = renewal();
    await runtime.pass(2 * PERIOD_MS);
    expect([one.state, one.lossReason]).toEqual(['lost', 'expired']);
    await late.reply([held()]);
    expect(one.state).toBe('lost');
    expect(one.validUntil).toBeLessThanOrEqual(runtime.now());
    expect(losses).toEqual(['expired']);
  });

  it('and was answered in the very moment the process woke up too late changes nothing either', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    runtime.jump(2 * PERIOD_MS);
    await renewal().reply([held()]);
    expect([one.state, one.lossReason]).toEqual(['lost', 'expired']);
  });

  it('and was refused in that moment says why it is lost: its time is over, unless another has entered', async () => {
    const [ended, entered] = [kept(), kept()];
    await runtime.pass(PERIOD_MS);
    runtime.jump(2 * PERIOD_MS);
    await renewal().reply([{ status: 'lost' }, { status: 'lost', intruder: true }]);
    expect([ended.lossReason, entered.lossReason]).toEqual(['expired', 'entered']);
  });
});

describe('loss', () => {
  it('a refusal is final, at once', async () => {
    const [lost, other] = [kept(), kept()];
    await runtime.pass(PERIOD_MS);
    await renewal().reply([{ status: 'lost' }, held()]);
    expect([lost.state, lost.lossReason, other.state]).toEqual(['lost', 'refused', 'held']);
    expect([...keeper.all]).toEqual([other]);
    await runtime.pass(PERIOD_MS);
    expect(renewal().claims.map(({ finalKey: key }) => key)).toEqual([other.key]);
  });

  it('the first check notices the end, also before the timer', () => {
    const one = kept();
    runtime.jump(WATCHDOG_MS - 1);
    keeper.checkExpiry(one);
    expect(one.state).toBe('held');
    runtime.jump(1);
    keeper.checkExpiry(one);
    expect([one.state, one.lossReason]).toEqual(['lost', 'expired']);
    expect(keeper.size).toBe(0);
  });

  it('after standing still past the lease, nothing is renewed that is over', async () => {
    const [over, still] = [kept(), kept({ validForMs: 90_000 })];
    await runtime.freeze(WATCHDOG_MS + 5_000);
    expect(over.state).toBe('lost');
    expect(renewal().claims.map(({ finalKey: key }) => key)).toEqual([still.key]);
  });

  it('a released hold is not touched by an answer that comes later', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    one.release();
    keeper.remove(one);
    await renewal().reply([{ status: 'lost' }]);
    expect([one.state, one.lossReason]).toEqual(['released', undefined]);
  });

  it('an answer of an older request changes nothing that a newer one has confirmed', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    const renewedAt = runtime.now();
    await runtime.pass(100);
    // What lease.extend does when its answer overtakes nothing but comes first.
    one.inStore.confirm(runtime.now(), 120_000);
    await renewal().reply([held()]);
    expect(one.validUntil).toBe(renewedAt + 100 + 120_000);
  });
});

describe('the timer', () => {
  it('is set for the soonest end, and not again for a hold that ends later', () => {
    kept({ renewed: false, validForMs: 500 });
    expect(runtime.due).toEqual([runtime.now() + 500]);
    kept();
    kept({ renewed: false, validForMs: 900 });
    expect(runtime.due).toEqual([runtime.now() + 500]);
    expect(runtime.timersSet).toBe(1);
  });

  it('does not come back when nothing is held any more', async () => {
    const one = kept();
    keeper.remove(one);
    await runtime.pass(PERIOD_MS);
    expect(runtime.due).toEqual([]);
    expect(store.sent).toEqual([]);
  });

  it('comes back for the next hold after a pause of any length', async () => {
    keeper.remove(kept());
    await runtime.pass(10 * WATCHDOG_MS);
    const one = kept();
    await runtime.pass(PERIOD_MS);
    await renewal().reply([held()]);
    expect(one.validUntil).toBe(runtime.now() + WATCHDOG_MS);
  });

  it('is gone after stop', async () => {
    kept();
    keeper.stop();
    await runtime.pass(10 * WATCHDOG_MS);
    await settled();
    expect([runtime.due, store.sent]).toEqual([[], []]);
  });
});

describe('a hold for which the store gave less than was asked for', () => {
  it('is renewed at a third of that, beside the round of the others', async () => {
    const [short, full] = [kept({ validForMs: 3_000 }), kept()];
    await runtime.pass(999);
    expect(store.sent).toHaveLength(0);
    await runtime.pass(1);
    expect(renewal().claims.map(({ finalKey, leaseMs }) => [finalKey, leaseMs])).toEqual([
      [short.key, WATCHDOG_MS],
    ]);
    await renewal().reply([held(3_000)]);
    await runtime.pass(1_000);
    expect(renewal().claims).toHaveLength(1);
    await renewal().reply([held()]);
    await runtime.pass(PERIOD_MS - 2_000);
    expect(renewal().claims.map(({ finalKey }) => finalKey)).toEqual([short.key, full.key]);
  });

  it('is tried again soon enough after a failure', async () => {
    const short = kept({ validForMs: 900 });
    await runtime.pass(300);
    await renewal().fail(unknown());
    await runtime.pass(90);
    await renewal().reply([held(900)]);
    expect(short.state).toBe('held');
  });
});

describe('a doubt that a store tells of', () => {
  it('has all holds of the key looked at at once, and no others', async () => {
    const [one] = [kept({ name: 'a' }), kept({ name: 'b' })];
    keeper.lookAt('a');
    await settled();
    expect(renewal().claims.map(({ finalKey }) => finalKey)).toEqual(['a']);
    await renewal().reply([{ status: 'lost' }]);
    expect([one.state, one.lossReason]).toEqual(['lost', 'refused']);
    keeper.lookAt(undefined);
    await settled();
    expect(renewal().claims.map(({ finalKey }) => finalKey)).toEqual(['b']);
  });

  it('looks at a fixed lease without lengthening it, and again after a failure', async () => {
    const fixed = kept({ renewed: false, validForMs: 20_000 });
    const until = fixed.validUntil;
    keeper.lookAt(undefined);
    await settled();
    expect(renewal().claim.leaseMs).toBe(1);
    await renewal().fail(unknown());
    await runtime.pass(RETRY_MS);
    expect(renewal().claim.leaseMs).toBe(1);
    await renewal().reply([held(60_000)]);
    expect(fixed.validUntil).toBe(until);
    await runtime.pass(20_000);
    expect([store.sent.length, fixed.lossReason]).toEqual([2, 'expired']);
  });

  it('that comes while a renewal is under way has them looked at again after it', async () => {
    const one = kept();
    await runtime.pass(PERIOD_MS);
    const first = renewal();
    keeper.lookAt(one.claim.finalKey);
    await settled();
    expect(store.unanswered).toHaveLength(1);
    await first.reply([held()]);
    expect(store.unanswered).toHaveLength(1);
    await renewal().reply([{ status: 'lost' }]);
    expect(one.lossReason).toBe('refused');
  });
});
