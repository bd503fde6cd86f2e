import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import type { ListReply } from '../../../lib/core/seam/listing.js';
import type { KeyState } from '../../../lib/core/seam/reply.js';
import { RedisFailure, replyError } from '../../../lib/stores/redis/connection/redis-failure.js';
import type { RedisRequest } from '../../../lib/stores/redis/connection/script.js';
import type { OneOfServers, RedisTopology } from '../../../lib/stores/redis/connection/redis-topology.js';
import { RedisListing } from '../../../lib/stores/redis/listing.js';
import { RedisKeys } from '../../../lib/stores/redis/redis-keys.js';

const STATE: KeyState = {
  kind: 'exclusive',
  holders: [{ owner: 'p:1', count: 1, remainingMs: 1 }],
  waiting: [],
};

const WAITED_FOR: KeyState = { kind: 'exclusive', holders: [], waiting: ['p:2'] };

type Steps = Readonly<Record<string, readonly [next: string, names: readonly string[]]>>;

/** The list of servers that answer SCAN with the step of its cursor. */
const listingOf = (servers: Record<string, Steps>, prefix = '') => {
  const sent: string[] = [];
  const serverOf = (name: string): OneOfServers => ({
    name,
    connection: {
      send: ({ command, args, read }: RedisRequest<unknown>) => {
        sent.push([name, command, ...args].join(' '));
        return Promise.resolve(read(servers[name]![String(args[0])]));
      },
    } as unknown as OneOfServers['connection'],
  });
  const topology = {
    hasSlots: true,
    requestEach: <T>(request: (server: OneOfServers) => Promise<T>) =>
      Promise.all(Object.keys(servers).map((name) => request(serverOf(name)))),
  } as unknown as RedisTopology;
  const listing = new RedisListing(
    topology,
    new RedisKeys(prefix),
    (key) => Promise.resolve(key.includes('none') ? null : STATE),
    (key) => Promise.resolve(key.includes('waited') ? WAITED_FOR : null),
  );
  return { listing, sent };
};

const namesOf = ({ keys }: ListReply): readonly string[] => keys.map(({ finalKey }) => finalKey);

const FIRST = { prefix: 'lock:', cursor: undefined };

describe('the list of Redis servers', () => {
  const servers = {
    'b:2': { 0: ['0', ['lock:b']] },
    'a:1': { 0: ['7', ['lock:a1', 'lock:none']], 7: ['0', ['lock:a2', 'lock:a2']] },
  } satisfies Record<string, Steps>;

  it('reads one master after the other, with one SCAN for each page', async () => {
    const { listing, sent } = listingOf(servers);
    const one = await listing.page(FIRST);
    expect(namesOf(one)).toEqual(['lock:a1']);
    const two = await listing.page({ ...FIRST, cursor: one.cursor });
    expect(namesOf(two)).toEqual(['lock:a2']);
    const three = await listing.page({ ...FIRST, cursor: two.cursor });
    expect([namesOf(three), three.cursor]).toEqual([['lock:b'], undefined]);
    expect(sent).toEqual(
      ['a:1 scan 0', 'a:1 scan 7', 'b:2 scan 0'].map((scan) => `${scan} match *lock:* count 500`),
    );
  });

  it('goes on with the next master when that of the cursor was replaced', async () => {
    const cursor = '7@a:1';
    const next = { 'aa:3': { 0: ['0', ['lock:c']] }, 'b:2': servers['b:2'] } satisfies Record<string, Steps>;
    expect(namesOf(await listingOf(next).listing.page({ ...FIRST, cursor }))).toEqual(['lock:c']);
    const none = { 'A:1': { 0: ['0', ['lock:d']] } } satisfies Record<string, Steps>;
    expect(await listingOf(none).listing.page({ ...FIRST, cursor })).toEqual({ keys: [], cursor: undefined });
  });

  it('escapes the prefix, with the prefix of the client', async () => {
    const { listing, sent } = listingOf({ 'a:1': { 0: ['0', ['ap*p:l[o]?\\^-x', 'ap*p:lock:x']] } }, 'ap*p:');
    expect(namesOf(await listing.page({ prefix: 'l[o]?\\^-', cursor: undefined }))).toEqual(['l[o]?\\^-x']);
    expect(sent).toEqual(['a:1 scan 0 match *ap\\*p:l\\[o\\]\\?\\\\^-* count 500']);
  });

  it('leaves out the names of what the library keeps beside the locks', async () => {
    const own = ['nest_redis_lock:queue:{lock:a}', 'nest_redis_lock:fence:{1}', 'redisson_lock_token:{a}'];
    const { listing } = listingOf({ 'a:1': { 0: ['0', [...own, 'a', 'b{}']] } });
    expect(namesOf(await listing.page({ prefix: '', cursor: undefined }))).toEqual(['a']);
  });

  it('has a key without a holder for each kind of wait queue, once', async () => {
    const keys = new RedisKeys('app:');
    const holds = ['app:lock:waited:1', 'app:lock:{waited}:2', 'app:lock:waited:3', 'app:lock:other'];
    const names = [
      ...[
        keys.queue(holds[0]!),
        keys.queue(holds[0]!),
        keys.fairQueue(holds[1]!),
        keys.readWriteQueue(holds[2]!),
      ],
      ...[keys.queue(holds[3]!), keys.fairTimeouts(holds[1]!), keys.queue('of-others:lock:waited')],
    ];
    const { listing } = listingOf({ 'a:1': { 0: ['0', names] } }, 'app:');
    const page = await listing.page(FIRST);
    expect(namesOf(page)).toEqual(['lock:waited:1', 'lock:{waited}:2', 'lock:waited:3']);
    expect(page.keys[0]!.state).toEqual(WAITED_FOR);
  });

  it.each(['7', '7@', '7@nowhere', '-7@a:1', '07@a:1', '18446744073709551616@a:1', '7@a:1 x', '7@/a:1'])(
    'rejects the forged cursor %j, and sends nothing',
    async (cursor) => {
      const { listing, sent } = listingOf(servers);
      await expect(listing.page({ ...FIRST, cursor })).rejects.toBeInstanceOf(LockConfigurationError);
      expect(sent).toEqual([]);
    },
  );

  it('names the missing right', async () => {
    const cause = replyError("NOPERM User locks has no permissions to run the 'scan' command");
    const send = () => Promise.reject(new RedisFailure('refused', 'not-executed', { cause }));
    const topology = {
      hasSlots: false,
      requestEach: <T>(request: (server: OneOfServers) => Promise<T>) =>
        Promise.all([request({ connection: { send } as unknown as OneOfServers['connection'] })]),
    } as unknown as RedisTopology;
    const listing = new RedisListing(
      topology,
      new RedisKeys(''),
      () => Promise.resolve(STATE),
      () => Promise.resolve(null),
    );
    await expect(listing.page(FIRST)).rejects.toThrow('lacks the ACL rule +scan');
    await expect(listing.page(FIRST)).rejects.toMatchObject({ cause });
  });
});
