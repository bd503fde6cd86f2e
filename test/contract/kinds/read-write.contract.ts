import { describe, expect, it } from 'vitest';
import type { QueueEntryTerms, ReadClaim, WriteClaim } from '../../../lib/core/seam/claim.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import type { Queued } from '../../../lib/core/seam/reply.js';
import {
  claimFor,
  expectGranted,
  expectTaken,
  WakeUpCounter,
  LONG_LEASE_MS,
  newKey,
  newOwner,
  eventLoopTurn,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import {
  fairFor,
  fairWaiter,
  READ,
  WRITE,
  readFor,
  writeFor,
  type KindContract,
} from './kind-under-contract.js';

type ReadWriteClaim = ReadClaim | WriteClaim;

const ALIVE_MS = 60_000;
const TERMS: QueueEntryTerms = { aliveMs: ALIVE_MS, provisionalLeaseMs: 10_000, tokens: 1 };

const acquire = (store: FullStore, claim: ReadWriteClaim) =>
  claim.kind === 'read' ? store.kinds.read.acquire(claim) : store.kinds.write.acquire(claim);

const take = async (store: FullStore, claim: ReadWriteClaim): Promise<Grant> => {
  const reply = await acquire(store, claim);
  expectGranted(reply);
  return reply;
};

const refused = async (store: FullStore, claim: ReadWriteClaim): Promise<number> => {
  const reply = await acquire(store, claim);
  expectTaken(reply);
  return reply.retryInMs;
};

/** Stands in line. */
const enqueue = async (store: FullStore, claim: ReadWriteClaim): Promise<Queued> => {
  const reply = await acquire(store, claim);
  expect(reply).toMatchObject({ status: 'queued' });
  return reply as Queued;
};

const waiting = <C extends ReadWriteClaim>(claim: C, entryTerms = TERMS): C => ({
  ...claim,
  waits: true,
  entryTerms,
});

const release = async (store: FullStore, claim: ReadWriteClaim): Promise<boolean> =>
  (await store.kinds[claim.kind].release(claim as never)).wasHeld;

const keep = async (store: FullStore, claim: ReadWriteClaim, aliveMs = ALIVE_MS) => {
  const entryTerms = { ...TERMS, aliveMs };
  const [reply] =
    claim.kind === 'read'
      ? await store.kinds.read.refreshEntries!([{ ...claim, entryTerms }])
      : await store.kinds.write.refreshEntries!([{ ...claim, entryTerms }]);
  return reply;
};

const ownersOf = async (store: FullStore, key: string): Promise<string[]> =>
  ((await store.inspect(key))?.holders ?? []).map(({ owner }) => owner).sort();

/** What the two halves of a read-write lock promise beside what all kinds do. */
export const readContract: KindContract = {
  under: READ,
  describeKind: (context) => {
    describeReaders(context);
    describeEnds(context);
    if (!context.severalNodes) describeWaitQueue(context);
  },
};

export const writeContract: KindContract = {
  under: WRITE,
  describeKind: (context) => {
    describeWriter(context);
    describeDowngrade(context);
    describeOtherKinds(context);
  },
};

function describeReaders(context: ContractContext): void {
  describe('readers', () => {
    it('share the lock across processes, and exclude writers until the last reader releases', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claims = Array.from({ length: 20 }, () => readFor(key));
      for (const [i, claim] of claims.entries()) await take(i % 2 ? a : b, claim);
      expect(await b.inspect(key)).toMatchObject({ kind: 'read', waiting: [] });
      expect(await ownersOf(b, key)).toEqual(claims.map(({ owner }) => owner).sort());
      for (const [i, claim] of claims.entries()) {
        expect(await refused(b, writeFor(key))).toBeGreaterThan(0);
        expect(await release(i % 2 ? a : b, claim)).toBe(true);
      }
      await take(b, writeFor(key));
    });

    it('keep their leases when another reader releases', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [one, other] = [readFor(key), readFor(key, { leaseMs: 60_000 })];
      await take(a, one);
      await take(b, other);
      expect(await release(a, one)).toBe(true);
      expect(await release(a, one), 'once').toBe(false);
      const [holder] = (await a.inspect(key))!.holders;
      expect(holder).toMatchObject({ owner: other.owner, count: 1 });
      expect(holder!.remainingMs).toBeGreaterThan(50_000);
      expect(await refused(a, writeFor(key))).toBeGreaterThan(50_000);
    });

    it('that crash stop blocking at the end of their own lease, whatever the leases of the others', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [crashed, living] = [readFor(key, { leaseMs: 1_000 }), readFor(key, { leaseMs: 40_000 })];
      await take(a, crashed);
      await take(b, living);
      await context.harness.pass(1_000);
      expect(await ownersOf(b, key)).toEqual([living.owner]);
      expect(await release(b, living)).toBe(true);
      await take(b, writeFor(key));
      expect(await release(a, crashed), 'too late').toBe(false);
      expect((await b.inspect(key))?.kind).toBe('write');
    });

    it('block a writer until the last of their leases expires, and its reply says when', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      await take(a, readFor(key, { leaseMs: 300 }));
      await take(b, readFor(key, { leaseMs: 900 }));
      const retryInMs = await refused(b, writeFor(key));
      expect(retryInMs).toBeLessThanOrEqual(900);
      expect(retryInMs).toBeGreaterThan(300);
      await context.harness.pass(retryInMs);
      await take(b, writeFor(key));
    });

    it('get no fencing token', async () => {
      expect((await take(await context.connect(), readFor(newKey()))).token).toBeUndefined();
    });

    it('asked for twice are one, which one release ends', async () => {
      const store = await context.connect();
      const claim = readFor(newKey());
      await take(store, claim);
      await take(store, claim);
      expect((await store.inspect(claim.finalKey))?.holders).toMatchObject([{ count: 1 }]);
      expect(await release(store, claim)).toBe(true);
      expect(await store.inspect(claim.finalKey)).toBeNull();
    });

    it('are ended by a forced unlock, all of them', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claims = [readFor(key), readFor(key)];
      for (const claim of claims) await take(a, claim);
      expect(await b.forceUnlock(key)).toBe(true);
      expect(await b.forceUnlock(key)).toBe(false);
      expect(await a.kinds.read.extendMany(claims)).toEqual([{ status: 'lost' }, { status: 'lost' }]);
      for (const claim of claims) expect(await release(a, claim)).toBe(false);
      await take(b, writeFor(key));
    });
  });
}

function describeEnds(context: ContractContext): void {
  describe('the lease of a reader', () => {
    it('is extended alone: the leases of other readers become neither longer nor shorter', async () => {
      const store = await context.connect();
      const key = newKey();
      const [mine, other] = [readFor(key, { leaseMs: 20_000 }), readFor(key, { leaseMs: 70_000 })];
      await take(store, mine);
      await take(store, other);
      expect(await store.kinds.read.extendMany([{ ...mine, leaseMs: 40_000 }])).toMatchObject([
        { status: 'held' },
      ]);
      const left = new Map((await store.inspect(key))!.holders.map((one) => [one.owner, one.remainingMs]));
      expect(left.get(mine.owner)).toBeGreaterThan(35_000);
      expect(left.get(mine.owner)).toBeLessThanOrEqual(40_000);
      expect(left.get(other.owner)).toBeGreaterThan(60_000);
      expect([...left.values()].every(Number.isInteger)).toBe(true);
    });

    it('is never shortened, revived or created by an extension', async () => {
      const store = await context.connect();
      const key = newKey();
      const [long, brief, never] = [
        readFor(key, { leaseMs: 60_000 }),
        readFor(key, { leaseMs: 40 }),
        readFor(key),
      ];
      await take(store, long);
      await take(store, brief);
      await context.harness.pass(40);
      const replies = await store.kinds.read.extendMany([{ ...long, leaseMs: 1 }, brief, never]);
      expect(replies.map(({ status }) => status)).toEqual(['held', 'lost', 'lost']);
      expect(replies[0]).toMatchObject({ validForMs: expect.closeTo(60_000, -4) as number });
      expect(await ownersOf(store, key)).toEqual([long.owner]);
    });

    it('may be set at its release, and wakes who waits', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = readFor(key);
      await take(a, claim);
      const wakeUps = await WakeUpCounter.live(b, readFor(key));
      const seen = wakeUps.count;
      expect((await a.kinds.read.release(claim, { keepForMs: 5_000 })).wasHeld).toBe(true);
      await wakeUps.next(seen);
      const retryInMs = await refused(b, writeFor(key));
      expect(retryInMs).toBeGreaterThan(2_000);
      expect(retryInMs).toBeLessThanOrEqual(5_000);
    });

    it('may be shortened by a release while its owner continues, and then renews and releases it', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = readFor(key);
      await take(a, claim);
      const { wasHeld } = await a.kinds.read.release(claim, { keepForMs: 5_000, continues: true });
      expect(wasHeld).toBe(true);
      // A quorum adds what clocks may run apart.
      expect(await refused(b, writeFor(key))).toBeLessThanOrEqual(5_100);
      const renewed = await a.kinds.read.extendMany([{ ...claim, leaseMs: 20_000 }]);
      expect(renewed).toMatchObject([{ status: 'held' }]);
      expect((await a.kinds.read.release(claim)).wasHeld).toBe(true);
      await take(b, writeFor(key));
    });
  });
}

function describeWriter(context: ContractContext): void {
  describe('a writer', () => {
    it('excludes readers and other writers', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = writeFor(key);
      await take(a, claim);
      for (const other of [readFor(key), writeFor(key)]) {
        const retryInMs = await refused(b, other);
        expect(retryInMs).toBeGreaterThan(LONG_LEASE_MS - 5_000);
        expect(retryInMs).toBeLessThanOrEqual(LONG_LEASE_MS);
      }
      expect(await b.inspect(key)).toMatchObject({
        kind: 'write',
        holders: [{ owner: claim.owner, count: 1 }],
        waiting: [],
      });
      expect(await release(a, claim)).toBe(true);
      expect(await release(a, claim)).toBe(false);
      expect(await b.inspect(key)).toBeNull();
    });

    it('of many who ask at once is one', async () => {
      const stores = [await context.connect(), await context.connect(), await context.connect()];
      const key = newKey();
      const claims = Array.from({ length: 30 }, () => writeFor(key));
      const replies = await Promise.all(claims.map((claim, i) => acquire(stores[i % 3]!, claim)));
      expect(replies.filter(({ status }) => status === 'granted')).toHaveLength(1);
    });

    it('gets tokens that grow, also over plain locks of the same key', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      let last = 0;
      for (let i = 0; i < 4; i += 1) {
        const [mine, plain] = [writeFor(key, { tokens: 3 }), claimFor(key)];
        const { token } = await take(a, mine);
        expect(token).toBeGreaterThan(last);
        expect(await release(a, mine)).toBe(true);
        const granted = await b.kinds.exclusive.acquire(plain);
        expectGranted(granted);
        expect(granted.token).toBeGreaterThan(token! + 2);
        last = granted.token!;
        await b.kinds.exclusive.release(plain);
      }
    });

    it('gets tokens of a counter of the key where it asks for them, the one of plain locks', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [mine, plain, last] = [
        writeFor(key, { tokens: 3, perKeyCounter: true }),
        claimFor(key, { perKeyCounter: true }),
        writeFor(key, { perKeyCounter: true }),
      ];
      expect((await take(a, mine)).token).toBe(1);
      await release(a, mine);
      const granted = await b.kinds.exclusive.acquire(plain);
      expectGranted(granted);
      expect(granted.token).toBe(4);
      await b.kinds.exclusive.release(plain);
      expect((await take(b, last)).token).toBe(5);
    });

    it('reacquires with a larger token, extends its lease, and loses the lock when the lease expires', async () => {
      const store = await context.connect();
      const claim = writeFor(newKey(), { leaseMs: 300 });
      const first = await take(store, claim);
      expect((await take(store, { ...claim, reacquires: true })).token).toBeGreaterThan(first.token!);
      expect(await store.kinds.write.extendMany([{ ...claim, leaseMs: 900 }])).toMatchObject([
        { status: 'held' },
      ]);
      await context.harness.pass(900);
      expect(await store.kinds.write.extendMany([claim])).toEqual([{ status: 'lost' }]);
      expect(await release(store, claim)).toBe(false);
    });

    it('loses its lock to a forced unlock', async () => {
      const store = await context.connect();
      const claim = writeFor(newKey());
      await take(store, claim);
      expect(await store.forceUnlock(claim.finalKey)).toBe(true);
      expect(await release(store, claim)).toBe(false);
    });
  });
}

function describeDowngrade(context: ContractContext): void {
  describe('a writer that becomes a reader', () => {
    it('lets readers in beside it, and no writer, and wakes who waits', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = writeFor(key);
      await take(a, claim);
      const wakeUps = await WakeUpCounter.live(b, readFor(key));
      const seen = wakeUps.count;
      const reply = await a.kinds.write.downgrade!(claim);
      expect(reply).toMatchObject({ status: 'held' });
      await wakeUps.next(seen);
      expect(await b.inspect(key)).toMatchObject({ kind: 'read', holders: [{ owner: claim.owner }] });
      await refused(b, writeFor(key));
      const other = readFor(key);
      await take(b, other);
      await release(b, other);
      const asReader: ReadClaim = { ...readFor(key), owner: claim.owner };
      expect(await a.kinds.read.extendMany([asReader])).toMatchObject([{ status: 'held' }]);
      expect(await release(a, asReader)).toBe(true);
      expect(await b.inspect(key)).toBeNull();
    });

    it('keeps what is left of its lease, and is asked for twice without harm, by a claim of either kind', async () => {
      const store = await context.connect();
      const claim = writeFor(newKey(), { leaseMs: 60_000 });
      await take(store, claim);
      for (const requested of [claim, { ...claim, leaseMs: 1 }]) {
        const reply = await store.kinds.write.downgrade!(requested);
        expect(reply).toMatchObject({ status: 'held' });
        if (reply.status === 'held') expect(reply.validForMs).toBeGreaterThan(50_000);
      }
      expect(
        await store.kinds.read.downgrade!({ ...readFor(claim.finalKey), owner: claim.owner }),
      ).toMatchObject({
        status: 'held',
      });
      expect(await store.kinds.write.extendMany([claim]), 'renewed by its old name').toMatchObject([
        { status: 'held' },
      ]);
      expect(await release(store, claim), 'and released by it').toBe(true);
      expect(await store.inspect(claim.finalKey)).toBeNull();
    });

    it('is lost when it has gone, and nothing is made of it', async () => {
      const store = await context.connect();
      const claim = writeFor(newKey());
      expect(await store.kinds.write.downgrade!(claim)).toEqual({ status: 'lost' });
      expect(await store.inspect(claim.finalKey)).toBeNull();
    });
  });
}

function describeOtherKinds(context: ContractContext): void {
  describe('a name', () => {
    it('that a plain lock has is taken for readers and writers, and the other way round, and both hear as what', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const plain = claimFor(key);
      await a.kinds.exclusive.acquire(plain);
      for (const claim of [readFor(key), writeFor(key)]) {
        const retryInMs = await refused(b, claim);
        expect(retryInMs).toBeGreaterThan(0);
        expect(retryInMs).toBeLessThanOrEqual(LONG_LEASE_MS);
        expect(await acquire(b, claim)).toMatchObject({ status: 'taken', heldAs: 'exclusive' });
        if (context.severalNodes) continue;
        const waiter = waiting({ ...claim, owner: newOwner() });
        expect(await enqueue(b, waiter)).toMatchObject({ heldAs: 'exclusive' });
        expect(await keep(b, waiter)).toMatchObject({ status: 'queued', heldAs: 'exclusive' });
        expect(await release(b, waiter), 'only stood in line').toBe(false);
      }
      expect(await b.inspect(key)).toMatchObject({ kind: 'exclusive', holders: [{ owner: plain.owner }] });
      expect((await a.kinds.exclusive.release(plain)).wasHeld).toBe(true);
      for (const claim of [readFor(key), writeFor(key)]) {
        await take(b, claim);
        const other = await a.kinds.exclusive.acquire(claimFor(key));
        expectTaken(other);
        expect(other.heldAs).toBe(claim.kind);
        expect(await a.inspect(key)).toMatchObject({ kind: claim.kind, holders: [{ owner: claim.owner }] });
        expect(await release(b, claim)).toBe(true);
      }
      expectGranted(await a.kinds.exclusive.acquire(claimFor(key)));
    });

    if (!context.severalNodes) {
      it('that a fair lock has is taken for readers and writers, which hear so, and the other way round', async () => {
        const [a, b] = [await context.connect(), await context.connect()];
        const key = newKey();
        const fair = fairFor(key);
        expectGranted(await a.kinds.fair.acquire(fair));
        for (const claim of [readFor(key), writeFor(key)]) {
          expect(await acquire(b, claim)).toMatchObject({ status: 'taken', heldAs: 'fair' });
        }
        expect((await a.kinds.fair.release(fair)).wasHeld).toBe(true);
        for (const claim of [readFor(key), writeFor(key)]) {
          await take(b, claim);
          expectTaken(await a.kinds.fair.acquire(fairFor(key)));
          const waiter = fairWaiter(key);
          expect(await a.kinds.fair.acquire(waiter)).toMatchObject({ status: 'queued', position: 0 });
          expect(await a.inspect(key)).toMatchObject({ kind: claim.kind, holders: [{ owner: claim.owner }] });
          expect(await b.forceUnlock(key)).toBe(true);
          await a.kinds.fair.release(waiter);
          expect(await a.inspect(key)).toBeNull();
        }
        expectGranted(await a.kinds.fair.acquire(fairFor(key)));
      });
    }

    it('that a reader or a writer has is not told as another kind to the other half', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      for (const [holder, requesting] of [
        [readFor, writeFor],
        [writeFor, readFor],
        [writeFor, writeFor],
      ] as const) {
        const key = newKey();
        await take(a, holder(key));
        expect(await acquire(b, requesting(key))).not.toHaveProperty('heldAs');
        if (context.severalNodes) continue;
        expect(await enqueue(b, waiting(requesting(key)))).not.toHaveProperty('heldAs');
      }
    });

    it('that a reader or a writer has is forced open as what it is, and a waiter of a plain lock hears of its end', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      for (const make of [readFor, writeFor]) {
        const key = newKey();
        const claim = make(key);
        await take(a, claim);
        const entryTerms = { aliveMs: ALIVE_MS, provisionalLeaseMs: 10_000, tokens: 1 };
        const plain = claimFor(key, { waits: true, entryTerms });
        const wakeUps = await WakeUpCounter.live(b, plain);
        const reply = await b.kinds.exclusive.acquire(plain);
        const seen = wakeUps.count;
        if (reply.status === 'queued') {
          expect(await release(a, claim)).toBe(true);
          await wakeUps.next(seen);
          expect(await b.kinds.exclusive.refreshEntries!([plain])).toEqual([{ status: 'held' }]);
        } else expect(await release(a, claim)).toBe(true);
        await b.kinds.exclusive.release(plain);
        await take(a, { ...claim, owner: newOwner() });
        expect(await b.forceUnlock(key)).toBe(true);
        expect(await b.inspect(key)).toBeNull();
      }
    });
  });
}

function describeWaitQueue(context: ContractContext): void {
  describe('the wait queue', () => {
    const three = async () =>
      [await context.connect(), await context.connect(), await context.connect()] as const;

    it('no reader overtakes a waiting writer, and the writer gets the lock after the readers before it', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      const [early, late] = [readFor(key), waiting(readFor(key))];
      const writer = waiting(writeFor(key));
      await take(a, early);
      expect(await enqueue(b, writer)).toMatchObject({ position: 0 });
      await refused(c, readFor(key));
      expect(await enqueue(c, late)).toMatchObject({ position: 1 });
      expect((await a.inspect(key))?.waiting).toEqual([writer.owner, late.owner]);
      expect(await keep(b, writer)).toMatchObject({ status: 'queued' });
      const wakeUps = await WakeUpCounter.live(b, writer);
      const seen = wakeUps.count;
      await release(a, early);
      await wakeUps.next(seen);
      expect(await keep(c, late)).toMatchObject({ status: 'queued' });
      expect(await keep(b, writer)).toEqual({ status: 'held' });
      expect(await keep(b, writer)).toEqual({ status: 'held' });
      expect((await c.inspect(key))?.kind).toBe('write');
      expect(await release(b, writer)).toBe(true);
      expect(await keep(c, late)).toEqual({ status: 'held' });
      expect(await release(c, late)).toBe(true);
      expect(await a.inspect(key)).toBeNull();
    });

    it('lets readers that waited in before a writer that came after them', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      const first = writeFor(key);
      await take(a, first);
      const [reader, writer] = [waiting(readFor(key)), waiting(writeFor(key))];
      await enqueue(b, reader);
      await enqueue(c, writer);
      await release(a, first);
      await refused(a, writeFor(key));
      expect(await keep(c, writer)).toMatchObject({ status: 'queued', position: 1 });
      expect(await keep(b, reader)).toEqual({ status: 'held' });
      expect(await keep(c, writer)).toMatchObject({ status: 'queued', position: 0 });
      await release(b, reader);
      expect(await keep(c, writer)).toEqual({ status: 'held' });
    });

    it('lets all readers in that no writer stands before, in whatever order they ask', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      const first = writeFor(key);
      await take(a, first);
      const readers = [waiting(readFor(key)), waiting(readFor(key))];
      await enqueue(b, readers[0]!);
      await enqueue(c, readers[1]!);
      await release(a, first);
      expect(await keep(c, readers[1]!)).toEqual({ status: 'held' });
      expect(await keep(b, readers[0]!)).toEqual({ status: 'held' });
      expect(await ownersOf(a, key)).toEqual(readers.map(({ owner }) => owner).sort());
    });

    it('gives who has a hold by it a first lease, and the lease that was meant when it asks for that', async () => {
      const store = await context.connect();
      const key = newKey();
      const first = writeFor(key);
      await take(store, first);
      const next = waiting(writeFor(key, { leaseMs: 60_000 }));
      await enqueue(store, next);
      await release(store, first);
      await keep(store, next);
      expect((await store.inspect(key))!.holders[0]!.remainingMs).toBeLessThanOrEqual(
        TERMS.provisionalLeaseMs,
      );
      expect((await take(store, { ...next, waits: false, reacquires: true })).token).toBeGreaterThan(0);
      expect((await store.inspect(key))!.holders[0]!.remainingMs).toBeGreaterThan(50_000);
    });

    it('drops the entry of a waiter that leaves, and notifies the next one', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      await take(a, readFor(key));
      const [writer, reader] = [waiting(writeFor(key)), waiting(readFor(key))];
      const { entry } = await enqueue(b, writer);
      await enqueue(c, reader);
      const wakeUps = await WakeUpCounter.live(c, reader);
      const seen = wakeUps.count;
      await entry.leave();
      await wakeUps.next(seen);
      expect(await keep(b, writer)).toEqual({ status: 'gone' });
      expect(await keep(c, reader)).toEqual({ status: 'held' });
      expect((await a.inspect(key))?.waiting).toEqual([]);
    });

    it('is left by a release, which says that nothing was held', async () => {
      const [a, b] = await three();
      const key = newKey();
      await take(a, writeFor(key));
      const reader = waiting(readFor(key));
      await enqueue(b, reader);
      expect(await release(b, reader)).toBe(false);
      expect((await a.inspect(key))?.waiting).toEqual([]);
    });

    it('forgets an entry that is not refreshed, where entries expire, and then it excludes no caller', async () => {
      const [a, b] = await three();
      const key = newKey();
      await take(a, readFor(key));
      const writer = waiting(writeFor(key), { ...TERMS, aliveMs: 300 });
      await enqueue(b, writer);
      const retryInMs = await refused(a, readFor(key));
      await context.harness.pass(300);
      if (context.harness.entriesExpire) {
        expect(retryInMs).toBeLessThanOrEqual(300);
        await take(a, readFor(key));
        expect((await a.inspect(key))?.waiting).toEqual([]);
      } else {
        await refused(a, readFor(key));
        await release(b, writer);
        await take(a, readFor(key));
      }
    });

    it('is looked at by all: readers and writers of three processes come in turn, and a writer is alone', async () => {
      const stores = await three();
      const key = newKey();
      const inside = { read: 0, write: 0 };
      let [max, served] = [0, 0];
      const task = async (i: number): Promise<void> => {
        const store = stores[i % 3]!;
        const claim = waiting(i % 4 === 0 ? writeFor(key) : readFor(key));
        const wakeUps = new WakeUpCounter(store, claim);
        let reply: { readonly status: string } | undefined = await acquire(store, claim);
        for (let seen = 0; reply?.status === 'queued';) {
          await wakeUps.next(seen);
          seen = wakeUps.count;
          reply = await keep(store, claim);
        }
        wakeUps.watch.close();
        expect(['granted', 'held']).toContain(reply?.status);
        inside[claim.kind] += 1;
        max = Math.max(max, inside.read);
        expect(inside.write === 0 || (inside.write === 1 && inside.read === 0)).toBe(true);
        await store.ping();
        await eventLoopTurn();
        inside[claim.kind] -= 1;
        served += 1;
        expect(await release(store, claim)).toBe(true);
      };
      await Promise.all(Array.from({ length: 60 }, (_, i) => task(i)));
      expect([served, inside.read, inside.write]).toEqual([60, 0, 0]);
      expect(max).toBeGreaterThan(1);
      expect(await stores[0].inspect(key)).toBeNull();
    });
  });
}
