import { describe, expect, it } from 'vitest';
import type { PermitClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, Taken } from '../../../lib/core/seam/reply.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { until } from '../../support/async.js';
import {
  claimFor,
  expectGranted,
  expectTaken,
  WakeUpCounter,
  LONG_LEASE_MS,
  newKey,
  takeWhenFree,
  eventLoopTurn,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import { PERMIT, permitFor, type KindContract } from './kind-under-contract.js';

const ownersOf = async (store: FullStore, key: string): Promise<string[]> =>
  ((await store.inspect(key))?.holders ?? []).map(({ owner }) => owner).sort();

const refusalOf = (request: Promise<unknown>): Promise<unknown> => request.catch((error: unknown) => error);

const KEY_ONLY = { outcome: 'not-executed', keyOnly: true };

/** What permits promise beside what all kinds do. */
export const permitContract: KindContract = {
  under: PERMIT,
  describeKind: (context) => {
    describePermits(context);
    describeEnds(context);
    describeLimits(context);
    describeNeighbours(context);
  },
};

const takeAll = async (store: FullStore, key: string, of: number): Promise<PermitClaim[]> => {
  const claims = Array.from({ length: of }, () => permitFor(key, { of }));
  for (const claim of claims) expectGranted(await store.kinds.permit.acquire(claim));
  return claims;
};

function describePermits(context: ContractContext): void {
  describe('permits', () => {
    it('are granted to as many owners as there are permits, of any process, and to no more', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claims = Array.from({ length: 30 }, () => permitFor(key, { of: 7 }));
      const replies = await Promise.all(
        claims.map((claim, i) => (i % 2 ? a : b).kinds.permit.acquire(claim)),
      );
      const winners = claims.filter((_, i) => replies[i]!.status === 'granted');
      expect(winners).toHaveLength(7);
      expect(await ownersOf(b, key)).toEqual(winners.map(({ owner }) => owner).sort());
    });

    it('keep their number for a waiter that relies on it, when the one that gave it is gone', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      // It is connected: else the number could be gone before its request.
      await b.ping();
      expectGranted(await a.kinds.permit.acquire(permitFor(key, { of: 1, leaseMs: 400 })));
      const waiter = permitFor(key, { of: undefined });
      const refused = await b.kinds.permit.acquire(waiter);
      expectTaken(refused);
      await context.harness.pass(refused.retryInMs + 1);
      expectGranted(await b.kinds.permit.acquire(waiter));
    });

    it('are valid for the lease and have no fencing token', async () => {
      const store = await context.connect();
      const reply = await store.kinds.permit.acquire(permitFor(newKey()));
      expect(reply).toMatchObject({ status: 'granted', validForMs: LONG_LEASE_MS });
      expect(reply).not.toHaveProperty('token');
    });

    it('are refused with the time until the next one ends', async () => {
      const store = await context.connect();
      const key = newKey();
      await store.kinds.permit.acquire(permitFor(key, { leaseMs: 60_000 }));
      await store.kinds.permit.acquire(permitFor(key, { leaseMs: 20_000 }));
      const reply = await store.kinds.permit.acquire(permitFor(key));
      expectTaken(reply);
      expect(reply.retryInMs).toBeGreaterThan(15_000);
      expect(reply.retryInMs).toBeLessThanOrEqual(20_000);
    });

    it('of one owner are one: asking again arms it to the new lease and takes nothing twice', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = permitFor(key);
      await a.kinds.permit.acquire(claim);
      expectGranted(await a.kinds.permit.acquire({ ...claim, leaseMs: 90_000 }));
      expectGranted(await b.kinds.permit.acquire(permitFor(key)));
      expectTaken(await b.kinds.permit.acquire(permitFor(key)));
      // Also when none is free.
      expectGranted(await a.kinds.permit.acquire({ ...claim, leaseMs: 90_000 }));
      const mine = (await b.inspect(key))!.holders.find(({ owner }) => owner === claim.owner)!;
      expect(mine.count).toBe(1);
      expect(mine.remainingMs).toBeGreaterThan(80_000);
      expect(Number.isInteger(mine.remainingMs)).toBe(true);
      expect((await a.kinds.permit.release(claim)).wasHeld).toBe(true);
      expectGranted(await b.kinds.permit.acquire(permitFor(key)));
      expectTaken(await b.kinds.permit.acquire(permitFor(key)));
    });

    it('wake a watcher when one is released, and it is free then', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [first] = await takeAll(a, key, 3);
      expectTaken(await b.kinds.permit.acquire(permitFor(key, { of: 3, waits: true })));
      const wakeUps = await WakeUpCounter.live(b, permitFor(key));
      const seen = wakeUps.count;
      expect(await a.kinds.permit.release(first!)).toEqual({ wasHeld: true, othersWaiting: true });
      await wakeUps.next(seen);
      expectGranted(await b.kinds.permit.acquire(permitFor(key, { of: 3 })));
    });

    it('appear in inspect with their kind, their owners and the remaining time of each', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [short, long] = [permitFor(key, { leaseMs: 20_000 }), permitFor(key, { leaseMs: 60_000 })];
      await a.kinds.permit.acquire(long);
      await a.kinds.permit.acquire(short);
      const state = (await b.inspect(key))!;
      expect(state).toMatchObject({ kind: 'permit', waiting: [] });
      const left = new Map(state.holders.map(({ owner, remainingMs }) => [owner, remainingMs]));
      expect(left.size).toBe(2);
      expect(left.get(short.owner)).toBeGreaterThan(15_000);
      expect(left.get(short.owner)).toBeLessThanOrEqual(20_000);
      expect(left.get(long.owner)).toBeGreaterThan(55_000);
      await a.kinds.permit.release(short);
      await a.kinds.permit.release(long);
      expect(await b.inspect(key)).toBeNull();
    });

    it('are all released by forceUnlock, which wakes waiters and returns whether one was held', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      expect(await b.forceUnlock(key)).toBe(false);
      const claims = await takeAll(a, key, 2);
      const wakeUps = await WakeUpCounter.live(b, permitFor(key));
      const seen = wakeUps.count;
      expect(await b.forceUnlock(key)).toBe(true);
      await wakeUps.next(seen);
      expect(await b.forceUnlock(key)).toBe(false);
      expect(await b.inspect(key)).toBeNull();
      for (const claim of claims) expect((await a.kinds.permit.release(claim)).wasHeld).toBe(false);
      await takeAll(b, key, 2);
      expectTaken(await b.kinds.permit.acquire(permitFor(key)));
    });

    it('at rest leave the name to another kind of lock once they are forced open', async () => {
      const store = await context.connect();
      const key = newKey();
      const claim = permitFor(key);
      await store.kinds.permit.acquire(claim);
      await store.kinds.permit.release(claim);
      expect(await store.forceUnlock(key)).toBe(false);
      expectGranted(await store.kinds.exclusive.acquire(claimFor(key)));
    });

    it('have no owner after they expire: forceUnlock finds none, and inspect shows none', async () => {
      const store = await context.connect();
      const key = newKey();
      await store.kinds.permit.acquire(permitFor(key, { leaseMs: 40 }));
      await context.harness.pass(40);
      expect(await store.inspect(key)).toBeNull();
      expect(await store.forceUnlock(key)).toBe(false);
    });
  });
}

function describeEnds(context: ContractContext): void {
  describe('the end of a permit', () => {
    it('a permit expires with its lease, and the next caller gets it', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const brief = permitFor(key, { leaseMs: 1_000 });
      await a.kinds.permit.acquire(permitFor(key));
      await a.kinds.permit.acquire(brief);
      const next = permitFor(key);
      const reply = await b.kinds.permit.acquire(next);
      expectTaken(reply);
      expect(reply.retryInMs).toBeLessThanOrEqual(1_000);
      await context.harness.pass(reply.retryInMs);
      expectGranted(await b.kinds.permit.acquire(next));
      expect(await a.kinds.permit.extendMany([brief])).toEqual([{ status: 'lost' }]);
      expect((await a.kinds.permit.release(brief)).wasHeld).toBe(false);
      expectTaken(await b.kinds.permit.acquire(permitFor(key)));
    });

    it('an extension sets the end later; it never shortens a lease and never revives an expired one', async () => {
      const store = await context.connect();
      const key = newKey();
      const [long, brief, never] = [
        permitFor(key, { of: 3 }),
        permitFor(key, { of: 3, leaseMs: 40 }),
        permitFor(key, { of: 3 }),
      ];
      await store.kinds.permit.acquire(long);
      await store.kinds.permit.acquire(brief);
      await context.harness.pass(40);
      const replies = await store.kinds.permit.extendMany([
        { ...long, leaseMs: 90_000 },
        { ...brief, leaseMs: 90_000 },
        { ...never, leaseMs: 90_000 },
      ]);
      expect(replies.map(({ status }) => status)).toEqual(['held', 'lost', 'lost']);
      const [shorter] = await store.kinds.permit.extendMany([{ ...long, leaseMs: 1 }]);
      expect(shorter).toMatchObject({ status: 'held' });
      if (shorter?.status === 'held') expect(shorter.validForMs).toBeGreaterThan(80_000);
      expect(await ownersOf(store, key)).toEqual([long.owner]);
    });

    it('may be put off to a set time at the release, sooner or later than the lease, and wakes who waits', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      for (const keepForMs of [5_000, 90_000]) {
        const key = newKey();
        const claim = permitFor(key, { of: 1 });
        await a.kinds.permit.acquire(claim);
        const wakeUps = await WakeUpCounter.live(b, permitFor(key));
        const seen = wakeUps.count;
        expect((await a.kinds.permit.release(claim, { keepForMs })).wasHeld).toBe(true);
        if (!context.polled) await wakeUps.next(seen);
        const reply = await b.kinds.permit.acquire(permitFor(key, { of: 1 }));
        expectTaken(reply);
        expect(reply.retryInMs).toBeGreaterThan(keepForMs - 4_000);
        expect(reply.retryInMs).toBeLessThanOrEqual(keepForMs);
        wakeUps.watch.close();
      }
    });

    it('is told to who waits when the owner asks for a shorter lease', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = permitFor(key, { of: 1 });
      await a.kinds.permit.acquire(claim);
      const wakeUps = await WakeUpCounter.live(b, permitFor(key));
      const seen = wakeUps.count;
      expectGranted(await a.kinds.permit.acquire({ ...claim, reacquires: true, leaseMs: 5_000 }));
      if (!context.polled) await wakeUps.next(seen);
      const reply = await b.kinds.permit.acquire(permitFor(key, { of: 1 }));
      expectTaken(reply);
      expect(reply.retryInMs).toBeLessThanOrEqual(5_000);
    });

    it.each([
      ['of what was never granted', 0],
      ['of what was released before', 1],
    ])('an undo never adds a permit: %s', async (_, releases) => {
      const store = await context.connect();
      const key = newKey();
      await store.kinds.permit.acquire(permitFor(key));
      const refused = permitFor(key);
      for (let i = 0; i < releases; i += 1) {
        await store.kinds.permit.acquire(refused);
        await store.kinds.permit.release(refused);
      }
      for (let i = 0; i < 3; i += 1) {
        expect((await store.kinds.permit.release(refused)).wasHeld).toBe(false);
      }
      expectGranted(await store.kinds.permit.acquire(permitFor(key)));
      expectTaken(await store.kinds.permit.acquire(permitFor(key)));
    });

    it('an undo never adds a permit: of a permit that expired, whether a renewal noticed it or not', async () => {
      const store = await context.connect();
      for (const look of [true, false]) {
        const key = newKey();
        const brief = permitFor(key, { leaseMs: 40 });
        await store.kinds.permit.acquire(brief);
        await store.kinds.permit.acquire(permitFor(key));
        await context.harness.pass(40);
        if (look) await store.kinds.permit.extendMany([brief]);
        expect((await store.kinds.permit.release(brief)).wasHeld).toBe(false);
        expect((await store.kinds.permit.release(brief)).wasHeld).toBe(false);
        expectGranted(await store.kinds.permit.acquire(permitFor(key)));
        expect((await store.kinds.permit.release(brief)).wasHeld).toBe(false);
        expectTaken(await store.kinds.permit.acquire(permitFor(key)));
      }
    });

    it('lets the same owner have a permit again, as one', async () => {
      const store = await context.connect();
      const key = newKey();
      const claim = permitFor(key, { leaseMs: 40 });
      await store.kinds.permit.acquire(claim);
      await context.harness.pass(40);
      expectGranted(await store.kinds.permit.acquire({ ...claim, leaseMs: LONG_LEASE_MS }));
      expect(await ownersOf(store, key)).toEqual([claim.owner]);
      expectGranted(await store.kinds.permit.acquire(permitFor(key)));
      expectTaken(await store.kinds.permit.acquire(permitFor(key)));
    });
  });
}

function describeLimits(context: ContractContext): void {
  describe('the number of permits', () => {
    it('is counted, with the number of free permits and the holders of the others', async () => {
      const store = await context.connect();
      const key = newKey();
      expect(await store.permits(key)).toBeNull();
      const [one, brief] = [permitFor(key, { of: 3 }), permitFor(key, { of: 3, leaseMs: 40 })];
      for (const claim of [one, brief]) expectGranted(await store.kinds.permit.acquire(claim));
      const { holders, ...numbers } = (await store.permits(key))!;
      expect(numbers).toEqual({ permits: 3, free: 1 });
      expect(holders.map(({ owner }) => owner).sort()).toEqual([one.owner, brief.owner].sort());
      await context.harness.pass(40);
      expect(await store.permits(key)).toMatchObject({
        permits: 3,
        free: 2,
        holders: [{ owner: one.owner }],
      });
      await store.kinds.permit.release(one);
      expect(await store.permits(key)).toEqual({ permits: 3, free: 3, holders: [] });
    });

    it('is never less than none free, also when it was lowered below the number of holders', async () => {
      const store = await context.connect();
      const key = newKey();
      await takeAll(store, key, 3);
      expectTaken(await store.kinds.permit.acquire(permitFor(key, { of: 2 })));
      expect(await store.permits(key)).toMatchObject({ permits: 2, free: 0 });
    });

    it('cannot be counted where the key has something else', async () => {
      const store = await context.connect();
      const key = newKey();
      expectGranted(await store.kinds.exclusive.acquire(claimFor(key)));
      expect(await refusalOf(store.permits(key))).toMatchObject(KEY_ONLY);
    });

    it('a later caller raises it, gets the previous number in its reply, and waiters wake up', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      await takeAll(a, key, 2);
      const wakeUps = await WakeUpCounter.live(b, permitFor(key));
      const seen = wakeUps.count;
      expect(await a.kinds.permit.acquire(permitFor(key, { of: 4 }))).toMatchObject({
        status: 'granted',
        limitBefore: 2,
      });
      await wakeUps.next(seen);
      const same = await b.kinds.permit.acquire(permitFor(key, { of: 4 }));
      expectGranted(same);
      expect(same.limitBefore).toBeUndefined();
      expectTaken(await b.kinds.permit.acquire(permitFor(key, { of: 4 })));
    });

    it('a later caller lowers it, and permits that are held stay', async () => {
      const store = await context.connect();
      const key = newKey();
      const claims = await takeAll(store, key, 3);
      expect(await store.kinds.permit.acquire(permitFor(key, { of: 1 }))).toMatchObject({
        status: 'taken',
        limitBefore: 3,
      });
      const one = { of: 1 };
      for (const claim of claims) {
        const reply = await store.kinds.permit.acquire(permitFor(key, one));
        expectTaken(reply);
        expect(reply.limitBefore).toBeUndefined();
        expect((await store.kinds.permit.release(claim)).wasHeld).toBe(true);
      }
      expectGranted(await store.kinds.permit.acquire(permitFor(key, one)));
      expectTaken(await store.kinds.permit.acquire(permitFor(key, one)));
    });

    it('is that of the store for who gives none', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      await a.kinds.permit.acquire(permitFor(key, { of: 2 }));
      const reply = await b.kinds.permit.acquire(permitFor(key, { of: undefined }));
      expectGranted(reply);
      expect(reply.limitBefore).toBeUndefined();
      expectTaken(await b.kinds.permit.acquire(permitFor(key, { of: undefined })));
    });

    it('has to be given by the first: else it is a failure of this key only, and nothing is taken', async () => {
      const store = await context.connect();
      const key = newKey();
      const failure = await refusalOf(store.kinds.permit.acquire(permitFor(key, { of: undefined })));
      expect(failure).toBeInstanceOf(StoreFailure);
      expect(failure).toMatchObject(KEY_ONLY);
      expect(String(failure)).toContain(
        'it was never given, it expired with the last lease, or the store has lost its data',
      );
      expect(await store.inspect(key)).toBeNull();
      await takeAll(store, key, 2);
    });
  });
}

function describeNeighbours(context: ContractContext): void {
  describe('a key with permits', () => {
    it('is no other lock while a permit is held, and another lock has no permits', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const [permits, lock] = [newKey(), newKey()];
      await a.kinds.permit.acquire(permitFor(permits));
      await a.kinds.exclusive.acquire(claimFor(lock));
      for (const [heldAs, request] of [
        ['permit', () => b.kinds.exclusive.acquire(claimFor(permits))],
        ['exclusive', () => b.kinds.permit.acquire(permitFor(lock))],
      ] as const) {
        const reply = await refusalOf(request());
        if (context.seesOtherKinds) {
          expectTaken(reply as AcquireReply);
          expect((reply as Taken).heldAs).toBe(heldAs);
        } else {
          expect(reply).toBeInstanceOf(StoreFailure);
          expect(reply).toMatchObject(KEY_ONLY);
        }
      }
      expect(await b.inspect(permits)).toMatchObject({ kind: 'permit' });
      expect(await b.inspect(lock)).toMatchObject({ kind: 'exclusive' });
    });

    it('ends what claims of another kind may think to have there, and only that', async () => {
      const store = await context.connect();
      const [permits, lock] = [newKey(), newKey()];
      const claim = permitFor(permits);
      await store.kinds.permit.acquire(claim);
      await store.kinds.exclusive.acquire(claimFor(lock));
      expect((await store.kinds.exclusive.release(claimFor(permits))).wasHeld).toBe(false);
      expect((await store.kinds.permit.release(permitFor(lock))).wasHeld).toBe(false);
      expect(await store.kinds.permit.extendMany([permitFor(lock), claim])).toMatchObject([
        { status: 'lost' },
        { status: 'held' },
      ]);
      expect(await store.inspect(lock)).toMatchObject({ kind: 'exclusive' });
    });

    it('is independent of other keys, and of 250 in one batch each is lengthened by itself', async () => {
      const store = await context.connect();
      const claims = Array.from({ length: 250 }, () => permitFor(newKey(), { of: 1 }));
      // In portions: a busy machine serves fewer than 250 within a command time-out.
      for (let at = 0; at < claims.length; at += 25)
        await Promise.all(claims.slice(at, at + 25).map((claim) => store.kinds.permit.acquire(claim)));
      const gone = new Set([0, 99, 100, 249]);
      for (const i of gone) await store.kinds.permit.release(claims[i]!);
      const replies = await store.kinds.permit.extendMany(claims);
      expect(replies.map(({ status }) => status)).toEqual(
        claims.map((_, i) => (gone.has(i) ? 'lost' : 'held')),
      );
    });

    it('serves 60 tasks of three processes, never more at once than there are permits', async () => {
      const stores = await Promise.all(Array.from({ length: 3 }, () => context.connect()));
      const key = newKey();
      let [inside, max, served] = [0, 0, 0];
      const task = async (index: number): Promise<void> => {
        const store = stores[index % stores.length]!;
        const claim = permitFor(key, { of: 4 });
        await takeWhenFree(store, claim);
        inside += 1;
        max = Math.max(max, inside);
        // The first ones stay until all permits are in use.
        await until(() => max >= 4, { what: 'four are inside' });
        await store.ping();
        await eventLoopTurn();
        inside -= 1;
        served += 1;
        expect((await store.kinds.permit.release(claim)).wasHeld).toBe(true);
      };
      await Promise.all(Array.from({ length: 60 }, (_, index) => task(index)));
      expect({ max, served, inside }).toEqual({ max: 4, served: 60, inside: 0 });
    });
  });
}
