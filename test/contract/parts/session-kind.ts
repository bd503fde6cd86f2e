import { describe, expect, it } from 'vitest';
import { kindOf } from '../../../lib/core/kinds/kinds.js';
import type { Claim, ReadClaim } from '../../../lib/core/seam/claim.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import type { QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { Queued } from '../../../lib/core/seam/reply.js';
import { until } from '../../support/async.js';
import {
  eventLoopTurn,
  expectGranted,
  expectTaken,
  holderOf,
  newKey,
  newOwner,
  takeWhenFree,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import { permitFor, readFor, writeFor, type KindUnderContract } from '../kinds/kind-under-contract.js';
import { describeHolds } from './holds.js';

/** A claim in the queue of a store that tells of turns. */
interface Waiter {
  readonly store: FullStore;
  readonly claim: Claim;
  readonly queued: Queued;
  readonly outcomes: readonly QueueEntryOutcome[];
}

const acquire = (store: FullStore, claim: Claim) => store.kinds[claim.kind].acquire(claim as never);

const release = async (store: FullStore, claim: Claim): Promise<boolean> =>
  (await store.kinds[claim.kind].release(claim as never)).wasHeld;

const enqueue = async (store: FullStore, wanted: Claim): Promise<Waiter> => {
  const claim = { ...wanted, waits: true } as Claim;
  const queued = await acquire(store, claim);
  if (queued.status !== 'queued') throw new Error(`the claim is ${queued.status}`);
  const outcomes: QueueEntryOutcome[] = [];
  queued.entry.listen({ notified: (outcome) => outcomes.push(outcome), missedNotification: () => undefined });
  return { store, claim, queued, outcomes };
};

/** Resolves with what a waiter is granted. */
const turnOf = async ({ outcomes }: Waiter): Promise<Grant> => {
  const outcome = await until(() => Promise.resolve(outcomes[0]), { what: 'its turn comes' });
  expectGranted(outcome as Grant);
  return outcome as Grant;
};

/** What a kind promises in a store whose holds end with a session, and whose queue tells of turns. */
export function describeSessionKind(context: ContractContext, kind: KindUnderContract): void {
  if (kind.kind === 'exclusive') describeHolds(context);
  describeTurns(context, kind);
  describeKept(context, kind);
  if (kind.kind === 'write') describeReadersAndWriters(context);
  if (kind.kind === 'permit') describeSeveralPermits(context);
}

function describeTurns(context: ContractContext, kind: KindUnderContract): void {
  /** A holder, and writers or owners behind it, each in a process of its own. */
  const queueOf = async (count: number) => {
    const key = newKey();
    const store = await context.connect();
    const holder = kind.claimFor(key);
    expectGranted(await acquire(store, holder));
    const waiters: Waiter[] = [];
    for (let i = 0; i < count; i += 1)
      waiters.push(await enqueue(await context.connect(), kind.rivalFor(key)));
    return { key, store, holder, waiters };
  };
  const ownersOf = (waiters: readonly Waiter[]): string[] => waiters.map(({ claim }) => claim.owner);

  describe('turns', () => {
    it('come in the order of the requests, each is told once, and positions count from the first waiter', async () => {
      const { key, store, holder, waiters } = await queueOf(3);
      expect(waiters.map(({ queued }) => queued.position)).toEqual([0, 1, 2]);
      expect(waiters.map(({ queued }) => queued.retryInMs)).toEqual([Infinity, Infinity, Infinity]);
      expect((await store.inspect(key))?.waiting).toEqual(ownersOf(waiters));
      expect(await release(store, holder)).toBe(true);
      for (const [i, waiter] of waiters.entries()) {
        await turnOf(waiter);
        expect((await holderOf(store, key))?.owner).toBe(waiter.claim.owner);
        expect((await store.inspect(key))?.waiting).toEqual(ownersOf(waiters.slice(i + 1)));
        expect(waiters.slice(i + 1).flatMap(({ outcomes }) => outcomes)).toEqual([]);
        expect(await release(waiter.store, waiter.claim)).toBe(true);
      }
      expect(await store.inspect(key)).toBeNull();
      expect(waiters.map(({ outcomes }) => outcomes.length)).toEqual([1, 1, 1]);
    });

    it('come with the session that they end with', async () => {
      const { store, holder, waiters } = await queueOf(1);
      await release(store, holder);
      const { session, validForMs } = await turnOf(waiters[0]!);
      expect(session!.over.aborted).toBe(false);
      expect(session!.validUntil).toBeGreaterThan(performance.now());
      expect(validForMs).toBeGreaterThan(0);
    });

    it('do not come to a claim that has left, and come to the one behind it', async () => {
      const { key, store, holder, waiters } = await queueOf(2);
      const [leaver, next] = waiters as [Waiter, Waiter];
      await leaver.queued.entry.leave();
      await leaver.queued.entry.leave();
      expect((await store.inspect(key))?.waiting).toEqual([next.claim.owner]);
      await release(store, holder);
      await turnOf(next);
      expect(leaver.outcomes).toEqual([]);
    });

    it('pass on when a claim leaves after it was granted', async () => {
      const { store, holder, waiters } = await queueOf(2);
      const [leaver, next] = waiters as [Waiter, Waiter];
      await release(store, holder);
      await turnOf(leaver);
      await leaver.queued.entry.leave();
      await turnOf(next);
    });

    it('are left by a release, which says that nothing was held', async () => {
      const { key, store, holder, waiters } = await queueOf(1);
      expect(await release(waiters[0]!.store, waiters[0]!.claim)).toBe(false);
      expect((await store.inspect(key))?.waiting).toEqual([]);
      expect(await release(store, holder)).toBe(true);
    });

    it('come by a forced unlock, also when the holder asked for that', async () => {
      const { key, store, holder, waiters } = await queueOf(2);
      expect(await store.forceUnlock(key)).toBe(true);
      await turnOf(waiters[0]!);
      expect(await release(store, holder), 'it has lost it').toBe(false);
      expect(await waiters[1]!.store.forceUnlock(key)).toBe(true);
      await turnOf(waiters[1]!);
    });

    it('are not overtaken by a claim that only tries', async () => {
      const { key, store, holder, waiters } = await queueOf(1);
      expectTaken(await kind.refused(store, key));
      await release(store, holder);
      expectTaken(await kind.refused(store, key));
      await turnOf(waiters[0]!);
    });

    it('are one for a claim that is repeated: it keeps its place, and then its hold', async () => {
      const { key, store, holder, waiters } = await queueOf(2);
      const [{ store: theirs, claim }] = waiters as [Waiter];
      for (let i = 0; i < 3; i += 1)
        expect(await acquire(theirs, claim)).toMatchObject({ status: 'queued', position: 0 });
      expect((await store.inspect(key))?.waiting).toEqual(ownersOf(waiters));
      await release(store, holder);
      const { token } = await turnOf(waiters[0]!);
      const again = await acquire(theirs, { ...claim, waits: false, reacquires: true });
      expectGranted(again);
      expect(again.token).toBe(token);
      expect(await release(theirs, claim)).toBe(true);
      // The node of a permit comes after the one of the turn.
      await turnOf(waiters[1]!);
      expect((await holderOf(store, key))?.owner).toBe(waiters[1]!.claim.owner);
    });

    it('come to each of 60 tasks of three processes, one at a time', async () => {
      const stores = await Promise.all(Array.from({ length: 3 }, () => context.connect()));
      const key = newKey();
      let [inside, max] = [0, 0];
      const task = async (i: number): Promise<void> => {
        const store = stores[i % 3]!;
        const claim = kind.rivalFor(key);
        await takeWhenFree(store, claim);
        max = Math.max(max, (inside += 1));
        await store.ping();
        await eventLoopTurn();
        inside -= 1;
        expect(await release(store, claim)).toBe(true);
      };
      await Promise.all(Array.from({ length: 60 }, (_, i) => task(i)));
      expect([max, inside, await stores[0]!.inspect(key)]).toEqual([1, 0, null]);
    });
  });
}

function describeKept(context: ContractContext, kind: KindUnderContract): void {
  describe('a hold', () => {
    it('is kept without a request, and extendMany says which are there', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claims = Array.from({ length: 30 }, () => kind.claimFor(newKey()));
      await Promise.all(claims.filter((_, i) => i % 3 !== 0).map((claim) => acquire(a, claim)));
      await b.forceUnlock(claims[1]!.finalKey);
      const replies = await kind.of(a).extendMany(claims);
      expect(replies.map(({ status }) => status)).toEqual(
        claims.map((_, i) => (i % 3 === 0 || i === 1 ? 'lost' : 'held')),
      );
      expect(await kind.of(b).extendMany([claims[2]!])).toEqual([{ status: 'lost' }]);
      expect(await kind.of(a).extendMany([])).toEqual([]);
    });

    it('cannot be kept for a time when it is released', async () => {
      const store = await context.connect();
      const claim = kind.claimFor(newKey());
      await acquire(store, claim);
      await expect(kind.of(store).release(claim, { keepForMs: 1_000 })).rejects.toMatchObject({
        outcome: 'not-executed',
        claimOnly: true,
      });
      expect(await release(store, claim)).toBe(true);
    });
  });

  if (!kindOf(kind.kind).fenced) return;
  describe('fencing tokens', () => {
    it('grow with every grant: by release, forceUnlock, in the queue, and from process to process', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const tokens: (number | undefined)[] = [];
      const take = async (store: FullStore, claim: Claim): Promise<void> => {
        const reply = await acquire(store, claim);
        expectGranted(reply);
        expect(reply.tokens).toBe(1);
        tokens.push(reply.token);
      };
      const [first, second] = [kind.claimFor(key), kind.claimFor(key)];
      await take(a, first);
      await release(a, first);
      await take(b, second);
      const waiter = await enqueue(a, kind.claimFor(key));
      await a.forceUnlock(key);
      tokens.push((await turnOf(waiter)).token);
      await release(a, waiter.claim);
      await take(b, kind.claimFor(key));
      expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => x! - y!));
      expect(tokens.every((token) => Number.isSafeInteger(token) && token! > 0)).toBe(true);
    });

    it('are not given to a claim that wants none, at once or in the queue', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = kind.claimFor(key, { tokens: 0 });
      const reply = await acquire(a, claim);
      expectGranted(reply);
      expect(reply).not.toHaveProperty('token');
      const waiter = await enqueue(b, kind.claimFor(key, { tokens: 0 }));
      await release(a, claim);
      expect(await turnOf(waiter)).not.toHaveProperty('token');
    });
  });
}

function describeReadersAndWriters(context: ContractContext): void {
  const three = () => Promise.all([context.connect(), context.connect(), context.connect()]);
  const take = async (store: FullStore, claim: Claim): Promise<void> =>
    expectGranted(await acquire(store, claim));

  describe('readers and writers', () => {
    it('readers share the lock, and a writer has it after the last of them', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      const readers = [readFor(key), readFor(key), readFor(key)];
      for (const [i, reader] of readers.entries()) await take(i % 2 ? a : b, reader);
      const state = await c.inspect(key);
      expect(state?.kind).toBe('read');
      expect(state?.holders.map(({ owner }) => owner)).toEqual(readers.map(({ owner }) => owner));
      const writer = await enqueue(c, writeFor(key));
      for (const [i, reader] of readers.entries()) {
        expect(writer.outcomes).toEqual([]);
        expect(await release(i % 2 ? a : b, reader)).toBe(true);
      }
      await turnOf(writer);
      expect((await a.inspect(key))?.kind).toBe('write');
    });

    it('no reader overtakes a waiting writer', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      const early = readFor(key);
      await take(a, early);
      const writer = await enqueue(b, writeFor(key));
      expectTaken(await acquire(c, readFor(key)));
      const late = await enqueue(c, readFor(key));
      expect([writer.queued.position, late.queued.position]).toEqual([0, 1]);
      await release(a, early);
      await turnOf(writer);
      expect(late.outcomes).toEqual([]);
      await release(b, writer.claim);
      await turnOf(late);
    });

    it('all readers between two writers have their turn together', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      const first = writeFor(key);
      await take(a, first);
      const readers = [await enqueue(b, readFor(key)), await enqueue(c, readFor(key))];
      const last = await enqueue(a, writeFor(key));
      await release(a, first);
      for (const reader of readers) await turnOf(reader);
      expect((await a.inspect(key))?.holders).toHaveLength(2);
      expect(last.outcomes).toEqual([]);
      for (const reader of readers) await release(reader.store, reader.claim);
      await turnOf(last);
    });

    it('readers go on when the writer that they waited for leaves', async () => {
      const [a, b, c] = await three();
      const key = newKey();
      await take(a, readFor(key));
      const writer = await enqueue(b, writeFor(key));
      const reader = await enqueue(c, readFor(key));
      await writer.queued.entry.leave();
      await turnOf(reader);
    });

    it('each excludes an exclusive lock of the same key, and hears as what it is held', async () => {
      const [a, b] = await three();
      for (const make of [readFor, writeFor]) {
        const key = newKey();
        const [claim, plain] = [make(key), { ...writeFor(key), kind: 'exclusive' } as Claim];
        await take(a, claim);
        expect(await acquire(b, plain)).toMatchObject({ status: 'taken', heldAs: claim.kind });
        const waiter = await enqueue(b, { ...plain, owner: newOwner() });
        expect(waiter.queued.heldAs).toBe(claim.kind);
        await release(a, claim);
        await turnOf(waiter);
        expect(await acquire(a, make(key))).toMatchObject({ status: 'taken', heldAs: 'exclusive' });
        const [reader, writer] = [await enqueue(a, readFor(key)), await enqueue(a, writeFor(key))];
        expect([reader.queued.heldAs, writer.queued.heldAs]).toEqual(['exclusive', 'exclusive']);
        await release(b, waiter.claim);
        await turnOf(reader);
        expect(writer.outcomes).toEqual([]);
      }
    });

    it('a forced unlock ends all readers', async () => {
      const [a, b] = await three();
      const key = newKey();
      const readers = [readFor(key), readFor(key)];
      for (const reader of readers) await take(a, reader);
      const writer = await enqueue(b, writeFor(key));
      expect(await b.forceUnlock(key)).toBe(true);
      await turnOf(writer);
      for (const reader of readers) expect(await release(a, reader)).toBe(false);
    });
  });

  describe('a writer that becomes a reader', () => {
    const asReader = ({ finalKey, owner }: Claim): ReadClaim => ({ ...readFor(finalKey), owner });

    it('lets the readers behind it in, and no writer, and is released by either kind', async () => {
      const [a, b, c] = await three();
      for (const asked of ['read', 'write'] as const) {
        const key = newKey();
        const claim = writeFor(key);
        await take(a, claim);
        const [reader, writer] = [await enqueue(b, readFor(key)), await enqueue(c, writeFor(key))];
        expect(await a.kinds.write.downgrade!(claim)).toMatchObject({ status: 'held' });
        await turnOf(reader);
        await release(b, reader.claim);
        expect(await b.inspect(key)).toMatchObject({
          kind: 'read',
          holders: [{ owner: claim.owner }],
          waiting: [writer.claim.owner],
        });
        expect(writer.outcomes).toEqual([]);
        expect(await a.kinds.write.downgrade!(claim), 'once more').toMatchObject({ status: 'held' });
        expect(await a.kinds.read.extendMany([asReader(claim)])).toMatchObject([{ status: 'held' }]);
        expect(await release(a, asked === 'read' ? asReader(claim) : claim)).toBe(true);
        await turnOf(writer);
        await release(c, writer.claim);
        expect(await b.inspect(key)).toBeNull();
      }
    });

    it('is lost when it has gone, and nothing is made of it', async () => {
      const [a, b] = await three();
      const [never, forced] = [writeFor(newKey()), writeFor(newKey())];
      await take(a, forced);
      await b.forceUnlock(forced.finalKey);
      for (const claim of [never, forced]) {
        expect(await a.kinds.write.downgrade!(claim)).toEqual({ status: 'lost' });
        expect(await b.inspect(claim.finalKey)).toBeNull();
      }
    });
  });
}

function describeSeveralPermits(context: ContractContext): void {
  const connectAll = (count: number) => Promise.all(Array.from({ length: count }, () => context.connect()));
  const takeAll = async (store: FullStore, key: string, of: number): Promise<Claim[]> => {
    const claims = Array.from({ length: of }, () => permitFor(key, { of }));
    for (const claim of claims) expectGranted(await acquire(store, claim));
    return claims;
  };

  describe('several permits', () => {
    it('and a lock that are requested for a new key at once are not both granted', async () => {
      const [a, b] = await connectAll(2);
      for (let i = 0; i < 20; i += 1) {
        const key = newKey();
        const replies = await Promise.allSettled([acquire(a!, writeFor(key)), acquire(b!, permitFor(key))]);
        const granted = replies.filter((one) => one.status === 'fulfilled' && one.value.status === 'granted');
        expect(granted.length).toBeLessThanOrEqual(1);
      }
    });

    it('are granted to as many owners as there are, of any process, and to no more', async () => {
      const stores = await connectAll(3);
      const key = newKey();
      const claims = Array.from({ length: 30 }, () => permitFor(key, { of: 7 }));
      const replies = await Promise.all(claims.map((claim, i) => acquire(stores[i % 3]!, claim)));
      const winners = claims.filter((_, i) => replies[i]!.status === 'granted').map(({ owner }) => owner);
      expect(winners).toHaveLength(7);
      const holders = (await stores[0]!.inspect(key))!.holders.map(({ owner }) => owner);
      expect(holders.toSorted()).toEqual(winners.toSorted());
    });

    it('go to those that wait in the order of their requests, whichever permit is released', async () => {
      const stores = await connectAll(4);
      const key = newKey();
      const held = await takeAll(stores[0]!, key, 3);
      const waiters: Waiter[] = [];
      for (const store of stores.slice(1)) waiters.push(await enqueue(store, permitFor(key, { of: 3 })));
      expect(waiters.map(({ queued }) => queued.position)).toEqual([0, 1, 2]);
      for (const [i, at] of [2, 0, 1].entries()) {
        expect(await release(stores[0]!, held[at]!)).toBe(true);
        await turnOf(waiters[i]!);
        expect(waiters.slice(i + 1).flatMap(({ outcomes }) => outcomes)).toEqual([]);
      }
      expect(await stores[0]!.inspect(key)).toMatchObject({
        holders: waiters.map(({ claim }) => ({ owner: claim.owner })),
        waiting: [],
      });
    });

    it('never have more holders than there are permits, and all of 60 tasks of three processes have theirs', async () => {
      const stores = await connectAll(3);
      const key = newKey();
      let [inside, max] = [0, 0];
      let allAreIn!: () => void;
      const full = new Promise<void>((resolve) => (allAreIn = resolve));
      const task = async (i: number): Promise<void> => {
        const store = stores[i % 3]!;
        const claim = permitFor(key, { of: 4 });
        await takeWhenFree(store, claim);
        max = Math.max(max, (inside += 1));
        if (inside === 4) allAreIn();
        await full;
        await store.ping();
        inside -= 1;
        expect(await release(store, claim)).toBe(true);
      };
      await Promise.all(Array.from({ length: 60 }, (_, i) => task(i)));
      expect([max, inside, await stores[0]!.inspect(key)]).toEqual([4, 0, null]);
    });

    it('do not wait for a claim that leaves while it is first', async () => {
      const [a, b, c] = await connectAll(3);
      const key = newKey();
      const [held] = await takeAll(a!, key, 1);
      const [leaver, next] = [
        await enqueue(b!, permitFor(key, { of: 1 })),
        await enqueue(c!, permitFor(key, { of: 1 })),
      ];
      await leaver.queued.entry.leave();
      await release(a!, held!);
      await turnOf(next);
      expect(leaver.outcomes).toEqual([]);
      await release(c!, next.claim);
      expect(await a!.inspect(key)).toBeNull();
    });

    it('and a lock do not have one key: the later one is refused by name, until permits at rest are forced open', async () => {
      const [a, b] = await connectAll(2);
      const [ofLock, ofPermits] = [newKey(), newKey()];
      const refused = { outcome: 'not-executed', keyOnly: true };
      expectGranted(await acquire(a!, writeFor(ofLock)));
      await expect(acquire(b!, permitFor(ofLock))).rejects.toMatchObject(refused);
      const permit = permitFor(ofPermits);
      expectGranted(await acquire(a!, permit));
      await expect(acquire(b!, writeFor(ofPermits))).rejects.toMatchObject(refused);
      await release(a!, permit);
      await expect(acquire(b!, writeFor(ofPermits))).rejects.toThrow('forceUnlock');
      expect(await b!.forceUnlock(ofPermits)).toBe(false);
      expectGranted(await acquire(b!, writeFor(ofPermits)));
    });
  });
}
