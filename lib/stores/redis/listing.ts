import type { ListedKey, ListReply, ListRequest } from '../../core/seam/listing.js';
import type { KeyState } from '../../core/seam/reply.js';
import { LockKeyError } from '../../core/errors/lock.errors.js';
import { foundAt, invalidCursor } from '../key-pages.js';
import { isNotPermitted, RedisFailure } from './connection/redis-failure.js';
import type { OneOfServers, RedisTopology } from './connection/redis-topology.js';
import { impossible } from './connection/strict-replies.js';
import type { QueueKind, RedisKeys } from './redis-keys.js';

/** Number of keys of any kind that Redis looks at for one page. */
const LOOKED_AT = 500;
/** Cursor of SCAN before its first and after its last step. */
const ENDS = '0';

/** Name of the only server. */
const ALONE = '';

/** Place in the list: a step of SCAN at a server. */
interface ScanPlace {
  readonly server: string;
  readonly scan: string;
}

interface ScanStep {
  readonly scan: string;
  readonly names: readonly string[];
}

/** Escapes what has a meaning in a pattern of Redis. */
const escaped = (text: string): string => text.replace(/[\\*?[\]]/g, '\\$&');

const nameOf = ({ name = ALONE }: OneOfServers): string => name;

const textOf = ({ server, scan }: ScanPlace): string => `${scan}@${server}`;

const isAddress = (text: string): boolean => /^[^\s/]+:\d{1,5}$/.test(text);

/** Reads a cursor, which a caller may have forged. */
const placeOf = (cursor: string, hasSlots: boolean): ScanPlace => {
  const [, scan, server] = /^(0|[1-9]\d{0,19})@(.*)$/s.exec(cursor) ?? [];
  if (scan === undefined || BigInt.asUintN(64, BigInt(scan)) !== BigInt(scan)) return invalidCursor();
  return (hasSlots ? isAddress(server!) : server === ALONE) ? { scan, server: server! } : invalidCursor();
};

const readScan = (reply: unknown): ScanStep => {
  const [scan, names] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (typeof scan !== 'string' || !/^\d+$/.test(scan) || !Array.isArray(names)) throw impossible(reply);
  return { scan, names: names.map(String) };
};

const lacksRule = (failure: unknown): never => {
  if (!isNotPermitted(failure)) throw failure;
  throw new RedisFailure(
    'the Redis user of the locks lacks the ACL rule +scan, which only lists need; see docs/operations/permissions.md',
    'not-executed',
    { cause: (failure as RedisFailure).cause },
  );
};

/** Lists the holds of all servers, one server after the other, in the order of their names. */
export class RedisListing {
  /**
   * @param look returns the state of a key; null for a value that is no lock
   * @param waiting returns the state of a key that has no holder, but callers in the wait queue of a kind
   */
  constructor(
    private readonly topology: RedisTopology,
    private readonly keys: RedisKeys,
    private readonly look: (finalKey: string) => Promise<KeyState | null>,
    private readonly waiting: (finalKey: string, kind: QueueKind) => Promise<KeyState | null>,
  ) {}

  /** See `LockStore.list`. */
  async page({ prefix, cursor }: ListRequest): Promise<ListReply> {
    const { topology, keys } = this;
    const place = cursor === undefined ? undefined : placeOf(cursor, topology.hasSlots);
    const servers = [...(await topology.requestEach((server) => Promise.resolve(server)))];
    servers.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    // The server of the cursor may have been replaced meanwhile.
    const at = place ? servers.findIndex((server) => nameOf(server) >= place.server) : 0;
    const server = servers[at];
    if (!server) return { keys: [], cursor: undefined };
    const from = place?.server === nameOf(server) ? place.scan : ENDS;
    // Also the names of wait queues, which have the key behind their own beginning.
    const { scan, names } = await this.scan(server, from, `*${escaped(keys.name(prefix))}*`);
    const next = scan === ENDS ? servers[at + 1] : server;
    const found = await foundAt([...new Set(names)], (name) => this.at(name, prefix));
    return {
      keys: [...new Map(found.map((one) => [one.finalKey, one])).values()],
      cursor: next && textOf({ server: nameOf(next), scan }),
    };
  }

  /** Returns what a name stands for: a key with holders, or the wait queue of a key without. */
  private async at(name: string, prefix: string): Promise<ListedKey | null> {
    const own = this.keys.name('');
    const queue = this.keys.queuedAt(name);
    const finalKey = queue ? queue.finalKey : name.slice(own.length);
    if (!(queue || name.startsWith(own)) || !finalKey.startsWith(prefix) || !this.mayBeLock(finalKey))
      return null;
    const state = await (queue ? this.waiting(finalKey, queue.kind) : this.look(finalKey));
    return state && { finalKey, state };
  }

  private scan({ connection }: OneOfServers, from: string, pattern: string): Promise<ScanStep> {
    const args = [from, 'match', pattern, 'count', LOOKED_AT];
    return connection.send({ command: 'scan', args, read: readScan, urgency: 'other' }).catch(lacksRule);
  }

  /** Returns false for the names of what the library keeps beside the locks. */
  private mayBeLock(finalKey: string): boolean {
    try {
      this.keys.check(finalKey);
      return true;
    } catch (error) {
      if (error instanceof LockKeyError) return false;
      throw error;
    }
  }
}
