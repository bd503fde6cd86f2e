import { describe, expect, it } from 'vitest';
import type { FairClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, Queued } from '../../../lib/core/seam/reply.js';
import {
  claimFor,
  expectGranted,
  expectTaken,
  holderOf,
  LONG_LEASE_MS,
  newKey,
  takeWhenFree,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import { FAIR, fairFor, fairWaiter, type KindContract } from './kind-under-contract.js';

function expectQueued(reply: AcquireReply): asserts reply is Queued {
  expect(reply).toMatchObject({ status: 'queued' });
}

const describeFair = (context: ContractContext): void => {
  /** Acquires the key, and then enqueues `count` waiters, each of another process. */
  const heldAndWaitedFor = async (count: number, first: Partial<FairClaim> = {}) => {
    const key = newKey();
    const holder = { store: await context.connect(), claim: fairFor(key, first) };
    expectGranted(await holder.store.kinds.fair.acquire(holder.claim));
    const waiters: { store: FullStore; claim: FairClaim; reply: Queued }[] = [];
    for (let i = 0; i < count; i += 1) {
      const waiter = { store: await context.connect(), claim: fairWaiter(key) };
      const reply = await waiter.store.kinds.fair.acquire(waiter.claim);
      expectQueued(reply);
      waiters.push({ ...waiter, reply });
    }
    return { key, holder, waiters };
  };
  type Waiter = Awaited<ReturnType<typeof heldAndWaitedFor>>['waiters'][number];
  const request = ({ store, claim }: Waiter): Promise<AcquireReply> => store.kinds.fair.acquire(claim);
  const owners = (waiters: readonly Waiter[]): string[] => waiters.map(({ claim }) => claim.owner);

  describe('holds', () => {
    it('a key has one owner at a time, with a lease and a growing token', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [mine, theirs] = [fairFor(key), fairFor(key)];
      const reply = await a.kinds.fair.acquire(mine);
      expectGranted(reply);
      expect(reply.validForMs).toBe(LONG_LEASE_MS);
      const refusal = await b.kinds.fair.acquire(theirs);
      expectTaken(refusal);
      expect(refusal.retryInMs).toBeGreaterThan(LONG_LEASE_MS - 5_000);
      expect(refusal.retryInMs).toBeLessThanOrEqual(LONG_LEASE_MS);
      expect((await a.kinds.fair.release(mine)).wasHeld).toBe(true);
      const next = await b.kinds.fair.acquire(theirs);
      expectGranted(next);
      expect(next.token).toBeGreaterThan(reply.token!);
    });

    it('excludes an exclusive lock of the same name, and is excluded by one', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [fair, plain] = [fairFor(key), claimFor(key)];
      const first = await a.kinds.fair.acquire(fair);
      expectGranted(first);
      expectTaken(await b.kinds.exclusive.acquire(plain));
      await a.kinds.fair.release(fair);
      const second = await b.kinds.exclusive.acquire(plain);
      expectGranted(second);
      expect(second.token).toBeGreaterThan(first.token!);
      expectTaken(await a.kinds.fair.acquire(fair));
      expectQueued(await a.kinds.fair.acquire(fairWaiter(key)));
    });

    it('the owner may reacquire its hold, also with a shorter lease, and one release ends it', async () => {
      const store = await context.connect();
      const claim = fairFor(newKey());
      await store.kinds.fair.acquire(claim);
      const again = await store.kinds.fair.acquire({ ...claim, reacquires: true, leaseMs: 5_000 });
      expectGranted(again);
      expect((await holderOf(store, claim.finalKey))?.remainingMs).toBeLessThanOrEqual(5_000);
      expect((await store.kinds.fair.release(claim)).wasHeld).toBe(true);
      expect((await store.kinds.fair.release(claim)).wasHeld).toBe(false);
      expect(await store.inspect(claim.finalKey)).toBeNull();
    });

    it('only the owner extends a hold, and no extension shortens it', async () => {
      const store = await context.connect();
      const claim = fairFor(newKey());
      await store.kinds.fair.acquire(claim);
      const longer = { ...claim, leaseMs: 60_000 };
      const [kept, raised, refused] = [
        await store.kinds.fair.extendMany([{ ...claim, leaseMs: 1_000 }]),
        await store.kinds.fair.extendMany([longer]),
        await store.kinds.fair.extendMany([{ ...longer, owner: fairFor('x').owner }]),
      ];
      expect([kept[0]?.status, raised[0]?.status, refused]).toEqual(['held', 'held', [{ status: 'lost' }]]);
      const leftMs = (await holderOf(store, claim.finalKey))!.remainingMs;
      expect(leftMs).toBeGreaterThan(55_000);
    });

    it('stays for its minimum time when it is released, and tells the first in line', async () => {
      const { key, holder, waiters } = await heldAndWaitedFor(1);
      await holder.store.kinds.fair.release(holder.claim, { keepForMs: 1_000 });
      const reply = await request(waiters[0]!);
      expectQueued(reply);
      expect(reply.retryInMs).toBeLessThanOrEqual(1_000);
      await context.harness.pass(reply.retryInMs);
      expectGranted(await request(waiters[0]!));
      expect(await holderOf(holder.store, key)).toMatchObject({ owner: waiters[0]!.claim.owner });
    });
  });

  describe('the wait queue', () => {
    it('is told in order by inspect, with the kind of the hold', async () => {
      const { key, holder, waiters } = await heldAndWaitedFor(3);
      expect(await holder.store.inspect(key)).toMatchObject({
        kind: 'fair',
        holders: [{ owner: holder.claim.owner, count: 1 }],
        waiting: owners(waiters),
      });
      expect(waiters.map(({ reply }) => reply.position)).toEqual([0, 1, 2]);
    });

    it('grants the lock to its head, in any order of requests, and then to the others in order', async () => {
      const { key, holder, waiters } = await heldAndWaitedFor(4);
      await holder.store.kinds.fair.release(holder.claim);
      const served: string[] = [];
      while (served.length < waiters.length) {
        // The last asks first each time.
        for (const waiter of waiters.toReversed()) {
          if (served.includes(waiter.claim.owner)) continue;
          await request(waiter);
        }
        const owner = (await holderOf(holder.store, key))?.owner;
        const next = waiters.find(({ claim }) => claim.owner === owner)!;
        served.push(next.claim.owner);
        expectGranted(await request(next));
        await next.store.kinds.fair.release(next.claim);
      }
      expect(served).toEqual(owners(waiters));
      expect(await holder.store.inspect(key)).toBeNull();
    });

    it('a caller that does not wait cannot overtake a waiter', async () => {
      const { key, holder, waiters } = await heldAndWaitedFor(1);
      await holder.store.kinds.fair.release(holder.claim);
      expectTaken(await holder.store.kinds.fair.acquire(fairFor(key)));
      expectGranted(await request(waiters[0]!));
    });

    it('has an owner once, however often it asks, and keeps its place', async () => {
      const { holder, key, waiters } = await heldAndWaitedFor(2);
      for (let i = 0; i < 3; i += 1) expectQueued(await request(waiters[0]!));
      expect((await holder.store.inspect(key))?.waiting).toEqual(owners(waiters));
    });

    it('drops the entry of a caller that gives up, and the entries behind move up', async () => {
      const { holder, key, waiters } = await heldAndWaitedFor(3);
      await waiters[1]!.reply.entry.leave();
      await waiters[1]!.reply.entry.leave();
      const [first, , last] = waiters as [Waiter, Waiter, Waiter];
      expect((await holder.store.inspect(key))?.waiting).toEqual(owners([first, last]));
      expect(await last.store.kinds.fair.refreshEntries?.([last.claim])).toMatchObject([
        { status: 'queued', position: 1 },
      ]);
    });

    it('releases the grant of an entry that is left', async () => {
      const { holder, key, waiters } = await heldAndWaitedFor(2);
      await holder.store.kinds.fair.release(holder.claim);
      await request(waiters[0]!);
      await waiters[0]!.reply.entry.leave();
      expectGranted(await request(waiters[1]!));
      expect(await holderOf(holder.store, key)).toMatchObject({ owner: waiters[1]!.claim.owner });
    });

    it('says of places how they stand, and of one that was left that it is gone', async () => {
      const { holder, waiters } = await heldAndWaitedFor(2);
      const { fair } = waiters[0]!.store.kinds;
      const kept = await fair.refreshEntries!([waiters[0]!.claim, waiters[1]!.claim, fairWaiter(newKey())]);
      expect(kept).toMatchObject([
        { status: 'queued', position: 0 },
        { status: 'queued', position: 1 },
        { status: 'gone' },
      ]);
      await holder.store.kinds.fair.release(holder.claim);
      expectGranted(await request(waiters[0]!));
      expect(await fair.refreshEntries!([waiters[0]!.claim])).toEqual([{ status: 'held' }]);
    });

    it('goes on when the hold in the way ends by itself', async () => {
      const { waiters } = await heldAndWaitedFor(1, { leaseMs: 1_000 });
      const { retryInMs } = waiters[0]!.reply;
      expect(retryInMs).toBeLessThanOrEqual(1_000);
      await context.harness.pass(retryInMs);
      expectGranted(await request(waiters[0]!));
    });

    it('the first waiter gets the key after a forced unlock', async () => {
      const { holder, key, waiters } = await heldAndWaitedFor(2);
      expect(await holder.store.forceUnlock(key)).toBe(true);
      expect(await holder.store.kinds.fair.extendMany([holder.claim])).toEqual([{ status: 'lost' }]);
      expectQueued(await request(waiters[1]!));
      expectGranted(await request(waiters[0]!));
    });

    it('60 owners of four processes get the key one after the other', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, () => context.connect()));
      const key = newKey();
      let inside = 0;
      let max = 0;
      let lastToken = 0;
      const task = async (index: number): Promise<void> => {
        const store = stores[index % stores.length]!;
        const claim = fairFor(key);
        const { token } = await takeWhenFree(store, claim);
        inside += 1;
        max = Math.max(max, inside);
        expect(token).toBeGreaterThan(lastToken);
        lastToken = token!;
        await store.ping();
        inside -= 1;
        expect((await store.kinds.fair.release(claim)).wasHeld).toBe(true);
      };
      await Promise.all(Array.from({ length: 60 }, (_, index) => task(index)));
      expect({ max, inside }).toEqual({ max: 1, inside: 0 });
    });
  });
};

/** What the fair lock promises beside what all kinds do. */
export const fairContract: KindContract = { under: FAIR, describeKind: describeFair };
