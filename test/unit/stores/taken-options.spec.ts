import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { resolveOptions } from '../../../lib/redis-lock.options.js';
import * as redisStores from '../../../lib/redis/index.js';
import { storeOn } from '../../../lib/store-of-options.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { RedisSource } from '../../../lib/stores/redis/topology-of.js';
import { storeHost } from '../../support/stores/store-host.js';
import { resolveEndpoint } from '../../../lib/stores/redis/connection/redis-settings.js';

const stores: LockStore[] = [];

/** What a service with this `redis` warns of before it connects. */
const warningsOf = (redis: RedisSource | readonly RedisSource[]): string[] => {
  const store = storeOn(redisStores, resolveOptions({ redis }));
  stores.push(store);
  const warnings: string[] = [];
  void store.open(storeHost({ warn: (warning) => warnings.push(warning) }));
  return warnings;
};
const named = (warnings: readonly string[]): string[] =>
  warnings.map((warning) => /settings of their own: (.*?)\. /.exec(warning)?.[1] ?? warning);

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

const AT = { host: '127.0.0.1', port: 1 };
const SENTINEL: RedisOptions = {
  sentinels: [AT],
  name: 'mymaster',
  sentinelCommandTimeout: 300,
  sentinelRetryStrategy: () => 7,
  sentinelReconnectStrategy: () => 8,
  sentinelMaxConnections: 3,
  sentinelUsername: 'me',
  sentinelPassword: 'secret',
  updateSentinels: false,
  failoverDetector: true,
  natMap: {},
  disableClientInfo: true,
};
const WITHOUT_EFFECT: RedisOptions = {
  maxRetriesPerRequest: null,
  retryStrategy: () => 1,
  connectTimeout: 77,
};
const NAMES = 'maxRetriesPerRequest, retryStrategy, connectTimeout';

describe('options of ioredis that have no effect on the locks', () => {
  it('are named in one warning, when given as options', () => {
    expect(named(warningsOf({ ...AT, ...WITHOUT_EFFECT }))).toEqual([NAMES]);
    const dnsLookup = (): void => undefined;
    expect(named(warningsOf({ ...AT, dnsLookup } as RedisOptions))).toEqual(['dnsLookup']);
    expect(named(warningsOf({ ...SENTINEL, dnsLookup } as RedisOptions))).toEqual(['dnsLookup']);
    expect(named(warningsOf({ ...AT, hots: 'misspelt' } as RedisOptions))).toEqual(['hots']);
    expect(named(warningsOf('redis://127.0.0.1:1?commandTimeout=50'))).toEqual(['commandTimeout']);
  });

  it('are named when a client is handed over that was made with them', () => {
    const client = new Redis({ ...AT, ...WITHOUT_EFFECT, lazyConnect: true });
    expect(named(warningsOf(client))[0]?.split(', ').sort()).toEqual(NAMES.split(', ').sort());
    expect(warningsOf(new Redis({ ...AT, lazyConnect: true }))).toEqual([]);
  });

  it('are named for a cluster, the ones of the Cluster and the ones of its redisOptions', () => {
    const cluster = new Cluster([AT], {
      lazyConnect: true,
      scaleReads: 'slave',
      natMap: {},
      dnsLookup: (address, done) => done(null, address),
      redisOptions: { maxRetriesPerRequest: 3, password: 'secret' },
    });
    expect(named(warningsOf(cluster))).toEqual(['scaleReads, maxRetriesPerRequest']);
    expect(named(warningsOf({ cluster: [AT], maxRetriesPerRequest: 3 }))).toEqual(['maxRetriesPerRequest']);
    expect(warningsOf(new Cluster([AT], { lazyConnect: true }))).toEqual([]);
  });

  it('are named once for all nodes of a quorum', () => {
    const nodes = [1, 2, 3].map((port) => ({ ...AT, port, maxRetriesPerRequest: 3 }));
    expect(warningsOf(nodes)).toEqual([
      expect.stringMatching(/^127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3: These/),
    ]);
  });

  it('are none of those that are taken over, or that say what the locks do anyway', () => {
    expect(
      warningsOf({
        ...SENTINEL,
        keyPrefix: 'a:',
        lazyConnect: true,
        maxRetriesPerRequest: 0,
        readOnly: false,
      }),
    ).toEqual([]);
    expect(warningsOf('redis://me:secret@127.0.0.1:1/3?family=4')).toEqual([]);
  });

  it('are not taken over, and options of Sentinel are, from options and from a client', () => {
    for (const source of [SENTINEL, new Redis({ ...SENTINEL, ...WITHOUT_EFFECT, lazyConnect: true })]) {
      const { options } = resolveEndpoint(source, 1_000).createClient('commands');
      const { failoverDetector, ...taken } = SENTINEL;
      expect(options).toMatchObject({ ...taken, maxRetriesPerRequest: 0, connectTimeout: 1_000 });
      expect(failoverDetector && (options as RedisOptions).failoverDetector).toBe(false);
    }
  });
});
