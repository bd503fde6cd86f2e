import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import type { ListedKey } from '../../../lib/core/seam/listing.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { claimFor } from '../../support/stores/harness.js';
import { threeNodes } from '../../support/stores/quorum-nodes.js';

const PREFIX = 'lock:';
const END = undefined;

/** Reads all pages; `between` runs after each. */
const listAll = async (
  store: QuorumStore,
  between: (page: number) => void = () => undefined,
): Promise<readonly ListedKey[]> => {
  const found: ListedKey[] = [];
  let page = 0;
  let cursor: string | undefined;
  do {
    const reply = await store.list({ prefix: PREFIX, cursor });
    found.push(...reply.keys);
    ({ cursor } = reply);
    between((page += 1));
  } while (cursor !== END);
  return found;
};

const counts = (keys: readonly ListedKey[]): Record<string, number | undefined> =>
  Object.fromEntries(keys.map(({ finalKey, nodes }) => [finalKey, nodes]));

/** Some keys, each at the nodes that its name has. */
const withKeys = async (names: readonly string[]) => {
  const quorum = threeNodes();
  for (const name of names) {
    const claim = claimFor(PREFIX + name);
    for (const [i, node] of ['a', 'b', 'c'].entries()) {
      if (!name.includes(node)) continue;
      await new MemoryStore({ shared: quorum.servers[i]!.space }).kinds.exclusive.acquire(claim);
    }
  }
  return quorum;
};

describe('the list of a quorum', () => {
  it('is the union of its nodes, each key once and with the number of nodes that have it', async () => {
    const { store } = await withKeys(['abc', 'ab', 'bc', 'a', 'b', 'c', 'ac']);
    const keys = await listAll(store);
    expect(keys).toHaveLength(7);
    expect(counts(keys)).toEqual({
      'lock:abc': 3,
      ...{ 'lock:ab': 2, 'lock:bc': 2, 'lock:ac': 2 },
      ...{ 'lock:a': 1, 'lock:b': 1, 'lock:c': 1 },
    });
  });

  it('names the holder that most nodes have, and any other one of its kind', async () => {
    const { store, servers } = threeNodes();
    const [lock, rest] = [claimFor('lock:x'), claimFor('lock:x')];
    for (const [i, claim] of [rest, lock, lock].entries())
      await new MemoryStore({ shared: servers[i]!.space }).kinds.exclusive.acquire(claim);
    const [only] = await listAll(store);
    expect(only).toMatchObject({
      nodes: 3,
      state: { holders: [{ owner: lock.owner }, { owner: rest.owner }] },
    });
  });

  it('passes over a node that cannot be reached, while a majority replies', async () => {
    const { store, servers } = await withKeys(['abc', 'ab', 'bc', 'a', 'c']);
    servers[0]!.isDown = true;
    expect(counts(await listAll(store))).toEqual({ 'lock:abc': 2, 'lock:ab': 1, 'lock:bc': 2, 'lock:c': 1 });
    servers[1]!.isDown = true;
    await expect(store.list({ prefix: PREFIX, cursor: undefined })).rejects.toBeInstanceOf(StoreFailure);
  });

  it('has the keys of a node that is back, if another node has them that is read later', async () => {
    const { store, servers } = await withKeys(['ab', 'ac', 'b']);
    servers[0]!.isDown = true;
    const keys = await listAll(store, () => (servers[0]!.isDown = false));
    expect(keys).toHaveLength(3);
    expect(counts(keys)).toEqual({ 'lock:ab': 2, 'lock:ac': 2, 'lock:b': 1 });
  });

  it('fails when a node rejects the request for a reason that only an operator can change', async () => {
    const { store, servers } = threeNodes();
    servers[0]!.send = () => Promise.reject(new StoreFailure('no right', 'not-executed'));
    await expect(listAll(store)).rejects.toThrow('no right');
  });

  it('is refused by the name of a node that cannot list', async () => {
    const nodes = [new MemoryStore(), Object.assign(new MemoryStore(), { list: undefined })];
    const store = new QuorumStore({ nodes, names: ['left', 'right'] });
    const refused = listAll(store);
    await expect(refused).rejects.toThrow('right cannot');
    await expect(refused).rejects.toBeInstanceOf(LockConfigurationError);
  });

  it.each(['0/0/', '1/1/', '3//', '2/1,0/', '2/0,0/', '01//', '1/00/', '0//nothing', 'x', '-1//'])(
    'rejects the forged cursor %j',
    async (cursor) => {
      const { store } = threeNodes();
      await expect(store.list({ prefix: PREFIX, cursor })).rejects.toBeInstanceOf(LockConfigurationError);
    },
  );
});
