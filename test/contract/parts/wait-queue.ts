import { describe, expect, it } from 'vitest';
import type { QueueEntryTerms } from '../../../lib/core/seam/claim.js';
import {
  expectGranted,
  expectTaken,
  holderOf,
  LONG_LEASE_MS,
  newKey,
  eventLoopTurn,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import {
  ALIVE_MS,
  PROVISIONAL_LEASE_MS,
  type WaitingProcess,
  waitingProcesses,
  type Waiter,
} from '../../support/stores/waiter.js';
import { HOSTILE_KEYS } from './hostile-keys.js';

/** Standing in line, and being granted there. */
export function describeWaitQueue(context: ContractContext): void {
  const release = async (
    store: FullStore,
    ...[claim]: Parameters<FullStore['kinds']['exclusive']['release']>
  ) => (await store.kinds.exclusive.release(claim)).wasHeld;

  const ownerOf = async (store: FullStore, key: string): Promise<string | undefined> =>
    (await holderOf(store, key))?.owner;

  /** Has a hold run out that was longer until now: however long its waiters took to line up. */
  const endsByItself = async (
    store: FullStore,
    claim: Parameters<FullStore['kinds']['exclusive']['acquire']>[0],
  ): Promise<void> => {
    expectGranted(
      await store.kinds.exclusive.acquire({ ...claim, leaseMs: 40, waits: false, reacquires: true }),
    );
    await context.harness.pass(40);
  };

  /** A holder in one process, and `count` waiters, each in its own process. */
  const queueOf = async (count: number, entryTerms?: QueueEntryTerms) => {
    const [first, ...others] = await waitingProcesses(context, count + 1);
    const key = newKey();
    const holder = await first!.take(key);
    const waiters: Waiter[] = [];
    for (const one of others) waiters.push(await one.enqueue(key, entryTerms && { entryTerms }));
    return { key, first: first!, others, holder, waiters, store: first!.store };
  };

  describe('a line', () => {
    it('has no place for who finds the key free, or does not wait', async () => {
      const [a, b] = await waitingProcesses(context, 2);
      const key = newKey();
      const mine = a!.waiting(key);
      expectGranted(await a!.store.kinds.exclusive.acquire(mine));
      expectTaken(await b!.store.kinds.exclusive.acquire(b!.claim(key)));
      expect(await b!.store.inspect(key)).toMatchObject({ holders: [{ owner: mine.owner }], waiting: [] });
      expect(await release(a!.store, mine)).toBe(true);
      expect(await a!.store.inspect(key)).toBeNull();
    });

    it('says how many stand before one, and how long the hold in the way lasts', async () => {
      const { waiters } = await queueOf(3);
      expect(waiters.map(({ queued }) => queued.position)).toEqual([0, 1, 2]);
      for (const { queued } of waiters) {
        expect(queued.retryInMs).toBeGreaterThan(LONG_LEASE_MS - 15_000);
        expect(queued.retryInMs).toBeLessThanOrEqual(LONG_LEASE_MS);
      }
      for (const [position, waiter] of waiters.entries()) {
        expect(await waiter.keep()).toMatchObject({ status: 'queued', position });
      }
    });

    it('is shown behind who holds the key, in its order', async () => {
      const { key, store, holder, waiters } = await queueOf(3);
      const owners = waiters.map(({ claim }) => claim.owner);
      expect(await store.inspect(key)).toMatchObject({
        kind: 'exclusive',
        holders: [{ owner: holder.owner }],
        waiting: owners,
      });
      await waiters[1]!.leave();
      expect((await store.inspect(key))?.waiting).toEqual([owners[0], owners[2]]);
    });

    it('is served in the order in which its waiters came, also where one process has several of them', async () => {
      const { key, store, holder, waiters, others } = await queueOf(2);
      waiters.push(await others[0]!.enqueue(key), await others[1]!.enqueue(key));
      expect(await release(store, holder)).toBe(true);
      for (const [i, waiter] of waiters.entries()) {
        await waiter.grant();
        expect(await ownerOf(store, key)).toBe(waiter.claim.owner);
        expect((await store.inspect(key))?.waiting).toEqual(
          waiters.slice(i + 1).map(({ claim }) => claim.owner),
        );
        await waiter.release();
      }
      expect(await store.inspect(key)).toBeNull();
      expect(
        waiters.flatMap(({ notified }) => notified.slice(1)),
        'nobody was told twice',
      ).toEqual([]);
    });

    it('tells the next one what it was granted: first lease, tokens, and how many wait behind it', async () => {
      for (let isNotified = false; !isNotified;) {
        const [a, b, c] = await waitingProcesses(context, 3);
        const key = newKey();
        const mine = a!.claim(key);
        const grant = await a!.store.kinds.exclusive.acquire(mine);
        expectGranted(grant);
        const waiter = await b!.enqueue(key, { tokens: 5 });
        const last = await c!.enqueue(key, { tokens: 0 });
        await release(a!.store, mine);
        // From time to time a key is free for a moment, for those who stand in no line.
        isNotified = (await waiter.grant()) === 'granted';
        if (isNotified) {
          const [notified] = waiter.notified;
          expect(notified).toMatchObject({ validForMs: PROVISIONAL_LEASE_MS, tokens: 5, waiting: 1 });
          expectGranted(notified as typeof grant);
          const { token } = notified as typeof grant;
          expect(token).toBeGreaterThan(grant.token!);
          const { remainingMs } = (await holderOf(a!.store, key))!;
          expect(remainingMs).toBeLessThanOrEqual(PROVISIONAL_LEASE_MS);
          await waiter.release();
          if ((await last.grant()) === 'granted') expect(last.notified[0]).not.toHaveProperty('token');
          await last.release();
          const next = await a!.store.kinds.exclusive.acquire(a!.claim(key));
          expectGranted(next);
          expect(next.token, 'the tokens of the line are used up').toBeGreaterThanOrEqual(token! + 5);
        }
      }
    });

    it('gives its lease and a larger token to who was granted there and asks for it', async () => {
      const { store, holder, waiters, key } = await queueOf(1);
      const [{ claim, store: theirs }] = waiters as [Waiter];
      await release(store, holder);
      await waiters[0]!.grant();
      const reply = await theirs.kinds.exclusive.acquire({ ...claim, waits: false, reacquires: true });
      expectGranted(reply);
      expect(reply.validForMs).toBe(LONG_LEASE_MS);
      expect((await holderOf(store, key))!.remainingMs).toBeGreaterThan(PROVISIONAL_LEASE_MS);
      const [notified] = waiters[0]!.notified;
      if (notified?.status === 'granted') expect(reply.token).toBeGreaterThan(notified.token!);
    });

    it('is not overtaken: not by one that only tries, nor by one that comes while the key is free', async () => {
      const [a, b, c] = await waitingProcesses(context, 3);
      for (const waits of [false, true]) {
        const key = newKey();
        const holder = await a!.take(key);
        const waiter = await b!.enqueue(key);
        await endsByItself(a!.store, holder);
        const late = waits ? c!.waiting(key) : c!.claim(key);
        const reply = await c!.store.kinds.exclusive.acquire(late);
        expect(reply.status).toBe(waits ? 'queued' : 'taken');
        expect(await waiter.grant()).toBe('granted');
        expect(await ownerOf(a!.store, key)).toBe(waiter.claim.owner);
        await waiter.release();
        if (waits) await c!.store.kinds.exclusive.release(late);
      }
    });

    it('gives a key whose hold has ended by itself to the first, when anybody keeps a place', async () => {
      const [a, b, c] = await waitingProcesses(context, 3);
      const key = newKey();
      const holder = await a!.take(key);
      const [first, second] = [await b!.enqueue(key), await c!.enqueue(key)];
      await endsByItself(a!.store, holder);
      expect(await second.keep()).toMatchObject({ status: 'queued' });
      expect(await first.grant()).toBe('granted');
      expect(await first.keep()).toEqual({ status: 'held' });
      await first.release();
      await second.grant();
      expect(await second.keep()).toEqual({ status: 'held' });
    });

    it('gives it to the first itself when that keeps its place', async () => {
      const [a, b] = await waitingProcesses(context, 2);
      const key = newKey();
      const holder = await a!.take(key);
      const waiter = await b!.enqueue(key);
      await endsByItself(a!.store, holder);
      expect(await waiter.keep()).toEqual({ status: 'held' });
      expect(await ownerOf(a!.store, key)).toBe(waiter.claim.owner);
      expect((await a!.store.inspect(key))?.waiting).toEqual([]);
    });

    it('passes to the next one when the provisional lease expires without a request', async () => {
      const [a, b, c] = await waitingProcesses(context, 3);
      const key = newKey();
      const holder = await a!.take(key);
      const entryTerms = { aliveMs: 60_000, provisionalLeaseMs: 40, tokens: 1 };
      const silent = await b!.enqueue(key, { entryTerms });
      const next = await c!.enqueue(key);
      await release(a!.store, holder);
      await silent.grant();
      await context.harness.pass(40);
      expect(await next.keep()).toEqual({ status: 'held' });
      expect(await silent.keep()).toEqual({ status: 'gone' });
    });
  });

  describe('a place in line', () => {
    it('that was left is granted nothing, and the one behind it is', async () => {
      const { store, key, holder, waiters } = await queueOf(2);
      const [leaver, next] = waiters as [Waiter, Waiter];
      await leaver.leave();
      await leaver.leave();
      expect(await next.keep()).toMatchObject({ status: 'queued', position: 0 });
      expect(await release(store, holder)).toBe(true);
      await next.grant();
      expect(await ownerOf(store, key)).toBe(next.claim.owner);
      expect(leaver.notified).toEqual([]);
      await next.release();
      expect(await store.inspect(key)).toBeNull();
    });

    it('that was left after it was granted gives the key back, to the next one', async () => {
      const { store, key, holder, waiters } = await queueOf(2);
      const [leaver, next] = waiters as [Waiter, Waiter];
      await release(store, holder);
      await leaver.grant();
      await leaver.leave();
      await next.grant();
      expect(await ownerOf(store, key)).toBe(next.claim.owner);
    });

    it('that was left when the key is free lets the next one have it', async () => {
      const [a, b, c] = await waitingProcesses(context, 3);
      const key = newKey();
      const holder = await a!.take(key);
      const [leaver, next] = [await b!.enqueue(key), await c!.enqueue(key)];
      await endsByItself(a!.store, holder);
      await leaver.leave();
      await next.grant();
      expect(await ownerOf(a!.store, key)).toBe(next.claim.owner);
      expect(leaver.notified).toEqual([]);
    });

    it('is left by a release, which says that nothing was held', async () => {
      const { store, key, holder, waiters } = await queueOf(1);
      const [waiter] = waiters as [Waiter];
      expect(await release(waiter.store, waiter.claim)).toBe(false);
      expect((await store.inspect(key))?.waiting).toEqual([]);
      expect(await release(store, holder)).toBe(true);
      expect(await store.inspect(key)).toBeNull();
    });

    it('that is gone stays gone: keeping it neither makes it again nor takes a hold', async () => {
      const { store, key, holder, waiters, others } = await queueOf(1);
      const [waiter] = waiters as [Waiter];
      await waiter.leave();
      const never = others[0]!.waiting(key);
      for (const isFree of [false, true]) {
        if (isFree) await release(store, holder);
        expect(await waiter.keep()).toEqual({ status: 'gone' });
        expect(await others[0]!.store.kinds.exclusive.refreshEntries!([never])).toEqual([{ status: 'gone' }]);
        expect(await ownerOf(store, key)).toBe(isFree ? undefined : holder.owner);
      }
    });

    it('is granted by a forced unlock, also when the holder asked for that', async () => {
      const { store, key, holder, waiters } = await queueOf(2);
      expect(await store.forceUnlock(key)).toBe(true);
      await waiters[0]!.grant();
      expect(await ownerOf(store, key)).toBe(waiters[0]!.claim.owner);
      expect(await release(store, holder), 'it has lost it').toBe(false);
      expect(await ownerOf(store, key)).toBe(waiters[0]!.claim.owner);
      expect(await waiters[1]!.store.forceUnlock(key)).toBe(true);
      await waiters[1]!.grant();
      expect(await ownerOf(store, key)).toBe(waiters[1]!.claim.owner);
    });

    it('waits on while the holder lets the key stay for a time', async () => {
      const { store, key, holder, waiters } = await queueOf(1);
      await store.kinds.exclusive.release(holder, { keepForMs: 40 });
      await context.harness.pass(40);
      expect(await waiters[0]!.grant()).toBe('held');
      expect(await ownerOf(store, key)).toBe(waiters[0]!.claim.owner);
    });

    it('lives for its time after it was kept, or until it is left, as the store has it', async () => {
      const { store, key, holder, waiters } = await queueOf(2, {
        aliveMs: 300,
        provisionalLeaseMs: PROVISIONAL_LEASE_MS,
        tokens: 1,
      });
      const [brief, kept] = waiters as [Waiter, Waiter];
      expect(await kept.keep(ALIVE_MS)).toMatchObject({ status: 'queued' });
      await context.harness.pass(300);
      const isThere = !context.harness.entriesExpire;
      expect((await store.inspect(key))?.waiting).toEqual(
        [brief, kept].slice(isThere ? 0 : 1).map(({ claim }) => claim.owner),
      );
      await release(store, holder);
      const next = isThere ? brief : kept;
      await next.grant();
      expect(await ownerOf(store, key)).toBe(next.claim.owner);
      expect(await brief.keep()).toEqual({ status: isThere ? 'held' : 'gone' });
    });

    it('is kept among 250 in one batch, each for itself', async () => {
      const [a, b] = await waitingProcesses(context, 2);
      const keys = Array.from({ length: 250 }, () => newKey());
      await Promise.all(keys.map((key) => a!.take(key)));
      const claims = keys.map((key) => b!.waiting(key));
      const { exclusive } = b!.store.kinds;
      const replies = await Promise.all(claims.map((claim) => exclusive.acquire(claim)));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set(['queued']));
      const gone = new Set([0, 99, 100, 249]);
      for (const i of gone) await exclusive.release(claims[i]!);
      const kept = await exclusive.refreshEntries!(claims);
      expect(kept.map(({ status }) => status)).toEqual(
        claims.map((_, i) => (gone.has(i) ? 'gone' : 'queued')),
      );
    });

    it('of a store that was closed is granted nothing', async () => {
      const { store, key, holder, waiters, others } = await queueOf(2);
      const grantSubscriptions = async (): Promise<number> =>
        (await context.harness.leftovers()).grantSubscriptions;
      const before = await grantSubscriptions();
      await others[0]!.store.close();
      // The server hears of a closed connection a moment after the client has let go of it.
      if (before > 0) await expect.poll(grantSubscriptions, { timeout: 5_000 }).toBe(before - 1);
      await release(store, holder);
      await waiters[1]!.grant();
      expect(await ownerOf(store, key)).toBe(waiters[1]!.claim.owner);
      await eventLoopTurn();
      expect(waiters[0]!.notified).toEqual([]);
    });

    it.each(Object.entries(HOSTILE_KEYS))('works with a hostile key: %s', async (_, key) => {
      const [a, b] = await waitingProcesses(context, 2);
      const holder = await a!.take(key);
      const waiter = await b!.enqueue(key);
      expect((await a!.store.inspect(key))?.waiting).toEqual([waiter.claim.owner]);
      await release(a!.store, holder);
      await waiter.grant();
      expect(await ownerOf(a!.store, key)).toBe(waiter.claim.owner);
      await waiter.release();
      expect(await a!.store.inspect(key)).toBeNull();
    });

    it('brings each of 60 tasks of three processes its turn, one at a time', async () => {
      const processes = await waitingProcesses(context, 3);
      const key = newKey();
      let [inside, max] = [0, 0];
      const task = async (process: WaitingProcess): Promise<void> => {
        const claim = process.waiting(key);
        const reply = await process.store.kinds.exclusive.acquire(claim);
        const waiter = reply.status === 'queued' ? await process.waiter(claim, reply) : undefined;
        if (waiter) await waiter.grant();
        else expectGranted(reply);
        max = Math.max(max, (inside += 1));
        await process.store.ping();
        await eventLoopTurn();
        inside -= 1;
        expect(await release(process.store, claim)).toBe(true);
      };
      await Promise.all(Array.from({ length: 60 }, (_, i) => task(processes[i % 3]!)));
      expect([max, inside, await processes[0]!.store.inspect(key)]).toEqual([1, 0, null]);
    });
  });
}
