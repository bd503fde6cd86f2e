import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import type { ListedKey, ListReply, ListRequest } from '../../../core/seam/listing.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { KeyState } from '../../../core/seam/reply.js';
import { foundAt, invalidCursor } from '../../key-pages.js';
import type { NodeStore } from './node-store.js';
import { mergedState } from './quorum-states.js';
import type { QuorumNode } from './quorum-node.js';

/** Place in the list: the node that is being read, the nodes that were read to their end, and the cursor of the node. */
interface Place {
  readonly at: number;
  readonly done: readonly number[];
  readonly cursor: string | undefined;
}

const START: Place = { at: 0, done: [], cursor: undefined };

const textOf = ({ at, done, cursor = '' }: Place): string => `${at}/${done.join()}/${cursor}`;

/** Reads a cursor, which a caller may have forged. */
const placeOf = (text: string, nodes: number): Place => {
  const [, at, done, cursor] = /^(\d{1,4})\/((?:\d{1,4}(?:,\d{1,4})*)?)\/(.*)$/s.exec(text) ?? [];
  if (at === undefined) return invalidCursor();
  const place = {
    at: Number(at),
    done: done === '' ? [] : done!.split(',').map(Number),
    cursor: cursor === '' ? undefined : cursor,
  };
  const isInOrder = place.done.every((node, i) => node < place.at && (i === 0 || place.done[i - 1]! < node));
  return place.at < nodes && isInOrder && textOf(place) === text ? place : invalidCursor();
};

/** What the list of a quorum needs of it. */
export interface ListingHost {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  /** Asks every node. Rejects when fewer than a majority reply. */
  readonly requestAll: <T>(request: (store: NodeStore) => Promise<T>) => Promise<readonly T[]>;
}

/**
 * Returns one page of the union of what the nodes have.
 *
 * Algorithm: reads one node after the other, and asks all nodes about each key that it has. Leaves out a key that a node
 * has whose keys were listed before. A node that cannot be reached is passed over while a majority replies.
 */
export const pageOfQuorum = async (
  host: ListingHost,
  { prefix, cursor }: ListRequest,
): Promise<ListReply> => {
  const { nodes } = host;
  const place = cursor === undefined ? START : placeOf(cursor, nodes.length);
  const { name, store } = nodes[place.at]!;
  if (!store.list) throw new LockConfigurationError(`The quorum cannot list its locks: ${name} cannot.`);
  const next = (done: readonly number[]): string | undefined =>
    place.at + 1 < nodes.length ? textOf({ at: place.at + 1, done, cursor: undefined }) : undefined;
  let reply: ListReply;
  try {
    reply = await store.list({ prefix, cursor: place.cursor });
  } catch (failure) {
    if (!(failure instanceof StoreFailure) || !failure.passing) throw failure;
    await host.requestAll((one) => one.ping());
    return { keys: [], cursor: next(place.done) };
  }
  const listed = new Set(place.done.map((node) => nodes[node]!.store));
  const finalKeys = reply.keys.map(({ finalKey }) => finalKey);
  return {
    keys: await foundAt(finalKeys, (finalKey) => unionAt(host, finalKey, listed)),
    cursor:
      reply.cursor === undefined
        ? next([...place.done, place.at])
        : textOf({ ...place, cursor: reply.cursor }),
  };
};

/** Resolves with what the nodes have at a key; null when one of `listed` has it, or none. */
const unionAt = async (
  { majority, requestAll }: ListingHost,
  finalKey: string,
  listed: ReadonlySet<NodeStore>,
): Promise<ListedKey | null> => {
  const isListed = { value: false };
  const states = await requestAll(async (store) => {
    const state = await stateAt(store, finalKey);
    if (state && listed.has(store)) isListed.value = true;
    return state;
  });
  if (isListed.value) return null;
  const found = states.filter((state) => state !== null);
  const state = mergedState(found, { atLeast: 1, majority });
  return state && { finalKey, state, nodes: found.length };
};

/** Resolves with null for a value that is no lock. */
const stateAt = async (store: NodeStore, finalKey: string): Promise<KeyState | null> => {
  try {
    return await store.inspect(finalKey);
  } catch (failure) {
    if (failure instanceof StoreFailure && failure.keyOnly) return null;
    throw failure;
  }
};
