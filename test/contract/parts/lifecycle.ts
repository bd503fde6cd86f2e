import { describe, expect, it } from 'vitest';
import type { KindUnderContract } from '../kinds/kind-under-contract.js';
import { within } from '../../support/async.js';
import type { FullStore } from '../../support/stores/harness.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import {
  holderOf,
  newKey,
  takeWhenFree,
  eventLoopTurn,
  type MakeHarness,
  type ContractContext,
} from '../../support/stores/harness.js';

/** What ends within this has not waited for the time-out of a command. */
const SHORTER_THAN_A_TIME_OUT_MS = 1_500;

/** Opening, closing, and what is left behind. */
export function describeLifecycle(
  context: ContractContext,
  kind: KindUnderContract,
  makeHarness: MakeHarness,
): void {
  /** Each request, and its reply for a free key. */
  const requests: [string, (store: FullStore, key: string) => Promise<unknown>, unknown][] = [
    [
      'acquire',
      (store, key) => kind.of(store).acquire(kind.claimFor(key)),
      expect.objectContaining({ status: 'granted' }),
    ],
    ['extendMany', (store, key) => kind.of(store).extendMany([kind.claimFor(key)]), [{ status: 'lost' }]],
    [
      'release',
      (store, key) => kind.of(store).release(kind.claimFor(key)),
      expect.objectContaining({ wasHeld: false }),
    ],
    ['inspect', (store, key) => store.inspect(key), null],
    ['forceUnlock', (store, key) => store.forceUnlock(key), false],
    ['ping', (store) => store.ping(), undefined],
  ];
  if (context.polled)
    requests.push(['peekMany', (store, key) => kind.of(store).peekMany!([kind.claimFor(key)]), [0]]);

  describe('life of a store', () => {
    it('answers a ping', async () => {
      const store = await context.connect();
      await expect(store.ping()).resolves.toBeUndefined();
    });

    it('close can be called twice, also at once: nothing is watched any more, and requests are refused', async () => {
      const store = await context.connect();
      if (!context.hasSessions) await kind.live(store, newKey());
      await Promise.all([store.close(), store.close()]);
      await store.close();
      await expect.poll(async () => (await context.harness.leftovers()).watches, { timeout: 5_000 }).toBe(0);
      await expect(store.ping()).rejects.toBeInstanceOf(StoreFailure);
      await expect(store.ping()).rejects.toMatchObject({ outcome: 'not-executed' });
    });

    it.each(requests)('after close, %s rejects with StoreFailure "not executed"', async (_, request) => {
      const store = await context.connect();
      await store.ping();
      await store.close();
      const failure = await request(store, newKey()).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StoreFailure);
      expect(failure).toMatchObject({ outcome: 'not-executed' });
    });

    /** What became of each request that was under way when the store closed; the key is that of the acquire. */
    const endsWhenClosing = async (store: FullStore) => {
      const keys = requests.map(() => newKey());
      const under = requests.map(([, request], i) => request(store, keys[i]!));
      const closing = store.close();
      const ends = await within(SHORTER_THAN_A_TIME_OUT_MS, Promise.allSettled(under), 'what was under way');
      await closing;
      const outcomes = ends.map((end, i) => {
        if (end.status === 'fulfilled') {
          expect(end.value).toEqual(requests[i]![2]);
          return 'answered';
        }
        expect(end.reason).toBeInstanceOf(StoreFailure);
        return (end.reason as StoreFailure).outcome;
      });
      return { outcomes, key: keys[0]! };
    };

    it('requests under way when it closes end with it, by an answer or a StoreFailure, and that is what happened', async () => {
      const store = await context.connect();
      await store.ping();
      const { outcomes, key } = await endsWhenClosing(store);
      expect(outcomes).toHaveLength(requests.length);
      const isHeld = (await holderOf(await context.connect(), key)) !== null;
      expect(outcomes[0] === 'unknown' ? [true, false] : [outcomes[0] === 'answered']).toContain(isHeld);
    });

    it('requests of a store that closes before it has reached its server end with it, "not executed"', async () => {
      const { outcomes, key } = await endsWhenClosing(await context.connect());
      // A store in its process has nothing to reach.
      const end = context.harness.address === undefined ? 'answered' : 'not-executed';
      // A store with sessions knows by itself which claims it has a node for. A store that queues requests still sends releases.
      const known = context.hasSessions ? ['extendMany', 'release'] : context.polled ? ['release'] : [];
      expect(outcomes).toEqual(requests.map(([name]) => (known.includes(name) ? 'answered' : end)));
      expect((await holderOf(await context.connect(), key)) !== null).toBe(end === 'answered');
    });

    it('close releases nothing: a hold stays until its lease ends', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      await a.close();
      expect(await holderOf(b, claim.finalKey)).toMatchObject({ owner: claim.owner });
    });

    it('requests of one store take effect in the order of the calls, from the first one on', async () => {
      // A server that has seen nothing yet: what a store has to prepare there must not change the order either.
      const harness = await makeHarness();
      const store = await harness.connect();
      const key = newKey();
      // The token of what several servers give together takes a second question, behind all of these.
      const tokens = context.severalNodes ? { tokens: 0 } : {};
      const [one, two] = [kind.claimFor(key, tokens), kind.claimFor(key, tokens)];
      // Something known and something new, mixed.
      await kind.of(store).release(kind.claimFor(key));
      const requested = [
        kind.of(store).acquire(one),
        kind.refused(store, key),
        kind.of(store).release(one),
        kind.of(store).acquire(two),
        store.inspect(key),
        store.forceUnlock(key),
        kind.of(store).extendMany([two]),
      ];
      const replies = await Promise.allSettled(requested);
      await store.close();
      await harness.cleanup();
      expect(replies.map((reply) => reply.status === 'fulfilled' && reply.value)).toMatchObject([
        { status: 'granted' },
        { status: 'taken' },
        { wasHeld: true },
        { status: 'granted' },
        { holders: [{ owner: two.owner }] },
        true,
        [{ status: 'lost' }],
      ]);
    });

    it('leaves nothing behind: no holds, no subscriptions', async () => {
      const harness = await makeHarness();
      const stores = await Promise.all([harness.connect(), harness.connect()]);
      try {
        const keys = Array.from({ length: 5 }, () => newKey());
        const use = async (index: number): Promise<void> => {
          const store = stores[index % 2]!;
          const claim = kind.claimFor(keys[index % keys.length]!);
          await takeWhenFree(store, claim);
          await kind.of(store).extendMany([claim]);
          if (index % 7 === 0) await store.forceUnlock(claim.finalKey);
          await kind.of(store).release(claim);
          await kind.of(store).release(kind.claimFor(claim.finalKey));
          await store.inspect(claim.finalKey);
        };
        await Promise.all(Array.from({ length: 60 }, (_, index) => use(index)));
        const brief = Array.from({ length: 200 }, () => kind.claimFor(newKey(), { leaseMs: 40 }));
        await Promise.all(brief.map((claim) => kind.of(stores[0]).acquire(claim)));
        if (context.hasSessions) await Promise.all(brief.map((claim) => kind.of(stores[0]).release(claim)));
        else await harness.pass(40);
        await expect
          .poll(() => harness.leftovers(), { timeout: 5_000 })
          .toEqual({ holds: 0, watches: 0, grantSubscriptions: 0 });
      } finally {
        await Promise.all(stores.map((store) => store.close()));
        await harness.cleanup();
      }
    });
  });

  // With a poller the core has the watches, and hears of the end with its next request.
  if (context.polled || context.hasSessions) return;
  describe('watches of a closed store', () => {
    it('after close, a watch never becomes live and says why', async () => {
      const store = await context.connect();
      await store.close();
      const wakeUps = kind.wakeUps(store, newKey());
      await wakeUps.until(() => wakeUps.failures.length > 0);
      expect(wakeUps.failures[0]).toBeInstanceOf(StoreFailure);
      expect(wakeUps.watch.live).toBe(false);
      expect(wakeUps.count).toBe(0);
    });

    it('close ends its watches, including starting ones, and nothing of other stores', async () => {
      const [a, b, c] = [await context.connect(), await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const ending = await kind.live(b, claim.finalKey);
      const starting = kind.wakeUps(b, claim.finalKey);
      const staying = await kind.live(c, claim.finalKey);
      const [endingSeen, startingSeen, stayingSeen] = [ending.count, starting.count, staying.count];
      await b.close();
      expect([ending.watch.live, starting.watch.live]).toEqual([false, false]);
      await kind.of(a).release(claim);
      await staying.next(stayingSeen);
      await eventLoopTurn();
      expect([ending.count, starting.count]).toEqual([endingSeen, startingSeen]);
      ending.watch.close();
    });
  });
}
