import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { ListedKey } from '../../../lib/core/seam/listing.js';
import type { KindStore } from '../../../lib/core/seam/lock-store.js';
import { until } from '../../support/async.js';
import {
  claimFor,
  expectGranted,
  WakeUpCounter,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import type { KindUnderContract } from '../kinds/kind-under-contract.js';

/** Lease of a hold that ends by itself. */
const EXPIRES_IN_MS = 500;
/** More than one page of a store whose keys have an order. */
const MANY = 230;
/** More pages than any test has. */
const MAX_PAGES = 200;

/** Characters with a meaning in a pattern, in a path or in a quoted text. The prefix of a key may end with each. */
const ODD_ENDS = [
  '*',
  '?',
  '[',
  '[a-z]',
  ']',
  '\\',
  '\\*',
  '%',
  '_',
  '%25',
  '^',
  '-',
  '/',
  '"',
  "'",
  '.',
  '🔒',
];
const ODD_KEYS = ['a/b', '../c', 'x\r\ny', '%2F', '"\'`', 'é'.normalize('NFD'), '🔒', ' ', '{tag}:a', '.'];

/** No store returns one of these. */
const FORGED = [
  'x', '*', '-1@', 'nan@', '99999999999999999999@', '1@a\r\nFLUSHALL', '9/0,1/x', '0/0/x', '1/1/x', '[1]',
  '{"__proto__":1}', '\0', "'; DROP TABLE nest_lock; --", '/', '../..', '1e3@', '00@x y',
]; // prettier-ignore

/** A prefix that no other test uses. */
const newPrefix = (): string => `lock:list:${randomUUID()}:`;

/** Reads all pages of a prefix. */
export const listAll = async (store: FullStore, prefix: string): Promise<readonly ListedKey[]> => {
  const found: ListedKey[] = [];
  let cursor: string | undefined;
  for (let pages = 1; pages <= MAX_PAGES; pages += 1) {
    const page = await store.list({ prefix, cursor });
    found.push(...page.keys);
    if (page.cursor === undefined) return found;
    expect(page.cursor).not.toBe('');
    cursor = page.cursor;
  }
  throw new Error(`the list has no end within ${MAX_PAGES} pages`);
};

const namesIn = async (store: FullStore, prefix: string): Promise<readonly string[]> =>
  (await listAll(store, prefix)).map(({ finalKey }) => finalKey).sort();

const hold = async (store: FullStore, keys: readonly string[]): Promise<() => Promise<unknown>> => {
  const claims = keys.map((key) => claimFor(key));
  for (const reply of await Promise.all(claims.map((claim) => store.kinds.exclusive.acquire(claim))))
    expectGranted(reply);
  return () => Promise.all(claims.map((claim) => store.kinds.exclusive.release(claim)));
};

/** The list of all keys that have a holder. */
export function describeListing(context: ContractContext, kinds: readonly KindUnderContract[]): void {
  describe('the list of holds', () => {
    it.each(kinds)('has a key of the kind $kind as inspect shows it, until its release', async (kind) => {
      const [a, b] = [await context.connect(), await context.connect()];
      const prefix = newPrefix();
      const claim = kind.claimFor(`${prefix}a`);
      expectGranted(await kind.of(a).acquire(claim));
      const listed = await listAll(b, prefix);
      expect(listed).toMatchObject([
        { finalKey: claim.finalKey, state: { kind: kind.kind, holders: [{ owner: claim.owner, count: 1 }] } },
      ]);
      expect(listed[0]!.nodes).toBe(context.severalNodes ? 3 : undefined);
      await kind.of(a).release(claim);
      expect(await listAll(b, prefix)).toEqual([]);
    });

    // In a quorum nothing tells of callers that wait; in Redis the same for permits.
    const queued = kinds.filter(
      ({ kind }) => context.hasSessions || context.polled || (context.hasWaitQueue && kind !== 'permit'),
    );
    it.each(queued)('has a key of the kind $kind for which a caller waits after the hold', async (kind) => {
      const [a, b, c] = [await context.connect(), await context.connect(), await context.connect()];
      const prefix = newPrefix();
      const entryTerms = { aliveMs: 60_000, provisionalLeaseMs: 10_000, tokens: 0 };
      const holder = kind.claimFor(`${prefix}a`, { leaseMs: EXPIRES_IN_MS });
      const waiter = { ...kind.rivalFor(`${prefix}a`), waits: true, entryTerms } as Claim;
      expectGranted(await kind.of(a).acquire(holder));
      // In a database it is in the wait queue while it watches.
      const watching = context.polled ? new WakeUpCounter(b, waiter) : undefined;
      const waiters: KindStore = b.kinds[waiter.kind];
      expect((await waiters.acquire(waiter)).status).toBe(context.polled ? 'taken' : 'queued');
      expect(await listAll(c, prefix)).toMatchObject([{ state: { holders: [{}], waiting: [{}] } }]);
      await (context.hasSessions ? kind.of(a).release(holder) : context.harness.pass(EXPIRES_IN_MS));
      const found = await until(
        async () => {
          const [one] = await listAll(c, prefix);
          const owners = one?.state.holders.map(({ owner }) => owner) ?? [];
          // In sessions the next one in the queue is the holder. It takes its permit by itself.
          const isOver = context.hasSessions ? owners.length > 0 : true;
          return isOver && !owners.includes(holder.owner) ? { one } : undefined;
        },
        { what: 'the hold has ended' },
      );
      const [holders, waiting] = context.hasSessions ? [[{}], []] : [[], [expect.any(String)]];
      expect(found.one).toMatchObject({ finalKey: holder.finalKey, state: { holders, waiting } });
      if (context.hasWaitQueue && !context.hasSessions)
        expect(found.one!.state.waiting).toEqual([waiter.owner]);
      expect(await c.inspect(holder.finalKey)).toEqual(context.hasSessions ? expect.anything() : null);
      watching?.watch.close();
      await waiters.release(waiter);
      await until(async () => (await listAll(c, prefix)).length === 0, { what: 'no caller waits' });
    });

    it('is empty when no key has the prefix', async () => {
      const store = await context.connect();
      expect(await listAll(store, newPrefix())).toEqual([]);
      expect(await listAll(store, `${newPrefix()}${'x'.repeat(3_000)}`)).toEqual([]);
      expect(await listAll(store, `${newPrefix()}\0`)).toEqual([]);
    });

    it('has only keys that begin with the prefix, whatever characters it has', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const prefix = newPrefix();
      const release = await hold(
        a,
        ['ab', ...ODD_ENDS].map((end) => `${prefix}${end}x`),
      );
      for (const end of ODD_ENDS) {
        const found = await namesIn(b, prefix + end);
        expect.soft(found, end).toContain(`${prefix}${end}x`);
        expect
          .soft(
            found.filter((key) => !key.startsWith(prefix + end)),
            end,
          )
          .toEqual([]);
      }
      expect(await namesIn(b, prefix.replace('list', 'l?st'))).toEqual([]);
      expect(await namesIn(b, prefix.toUpperCase())).toEqual([]);
      await release();
    });

    it('has keys exactly as they were acquired', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const prefix = newPrefix();
      const keys = ODD_KEYS.map((key) => prefix + key);
      const release = await hold(a, keys);
      expect(await namesIn(b, prefix)).toEqual(keys.sort());
      await release();
    });

    it('has each of many keys once, on several pages', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const prefix = newPrefix();
      const keys = Array.from({ length: MANY }, (_, i) => `${prefix}${i}`);
      const release = await hold(a, [...keys, `${prefix.slice(0, -1)};`, `${prefix.slice(0, -1)}9`]);
      expect(await namesIn(b, prefix)).toEqual(keys.sort());
      const first = await b.list({ prefix, cursor: undefined });
      expect(first.keys.length).toBeLessThan(1_000);
      await release();
      expect(await listAll(b, prefix)).toEqual([]);
    });

    it.each(FORGED)('rejects the cursor %j, which no store returns', async (cursor) => {
      const store = await context.connect();
      await expect(store.list({ prefix: newPrefix(), cursor })).rejects.toBeInstanceOf(
        LockConfigurationError,
      );
    });

    if (context.takesNul) return;
    it('rejects a cursor with a NUL, which no key has there', async () => {
      const store = await context.connect();
      const prefix = newPrefix();
      await expect(store.list({ prefix, cursor: `${prefix}\0` })).rejects.toBeInstanceOf(
        LockConfigurationError,
      );
    });
  });
}
