import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { resolveOptions } from '../../../lib/nest/module/redis-lock.options.js';
import * as redisStores from '../../../lib/entries/redis.js';
import { storeOn } from '../../../lib/nest/module/store-of-options.js';
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

/** How a service with this `redis` is refused; an empty text if it is not. */
const refusalOf = (redis: unknown): string => {
  try {
    warningsOf(redis as RedisSource);
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return (error as Error).message;
  }
};

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
    expect(named(warningsOf('redis://127.0.0.1:1?commandTimeout=50'))).toEqual(['commandTimeout']);
  });

  it('are named when a client is handed over that was made with them', () => {
    const client = new Redis({ ...AT, ...WITHOUT_EFFECT, lazyConnect: true });
    expect(named(warningsOf(client))[0]?.split(', ').sort()).toEqual(NAMES.split(', ').sort());
    expect(warningsOf(new Redis({ ...AT, lazyConnect: true }))).toEqual([]);
    const connected = new Redis({ ...AT, retryStrategy: null });
    connected.on('error', () => undefined);
    expect(named(warningsOf(connected))).toEqual(['retryStrategy']);
    connected.disconnect();
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

describe('fields that ioredis does not have', () => {
  const CLUSTER = { cluster: [AT] };
  const URL_ITSELF = "Write the URL itself in place of the object: 'redis://host:port'.";
  const SENTINEL_HAS = 'A sentinel has host, port, family';

  it.each([
    // What other clients call an address: ioredis would connect to localhost.
    ['url', { url: 'redis://shop:6379' }, URL_ITSELF],
    ['url', { ...AT, url: 'redis://shop:6379' }, URL_ITSELF],
    ['uri', { uri: 'redis://shop:6379' }, URL_ITSELF],
    ['socket', { socket: { host: 'shop' } }, 'Write its host and port, or its path, beside'],
    ['redisOptions', { redisOptions: { host: 'shop' } }, 'Write its options beside'],
    ['nodes', { nodes: [AT] }, 'Write cluster: ['],
    ['rootNodes', { rootNodes: [AT] }, 'Write cluster: ['],
    ['hostname', { hostname: 'shop' }, 'Did you mean host?'],
    ['hosts', { ...AT, hosts: 'shop' }, 'Did you mean host?'],
    ['user', { ...AT, user: 'me' }, 'Did you mean username?'],
    ['database', { ...AT, database: 3 }, 'Write db'],
    ['ssl', { ...AT, ssl: true }, 'Write tls'],
    ['commandTimeoutMs', { ...AT, commandTimeoutMs: 50 }, 'of RedisStore: forRoot('],
    ['isMine', { ...AT, isMine: true }, 'Its options are host, port'],
    ['"a-b"', { ...AT, 'a-b': true }, 'Its options are host, port'],
    ['url', { ...CLUSTER, url: 'redis://shop:6379' }, URL_ITSELF],
    ['redisOptions.socket', { ...CLUSTER, redisOptions: { socket: {} } }, 'Write its host and port'],
    ['cluster[1].url', { cluster: [AT, { url: 'redis://shop' }] }, URL_ITSELF],
    ['cluster[0].hostname', { cluster: [{ hostname: 'shop' }] }, 'Did you mean host?'],
    ['sentinels[1].ip', { sentinels: [AT, { ip: '127.0.0.1' }], name: 'm' }, SENTINEL_HAS],
    [
      'sentinels[0].password',
      { sentinels: [{ ...AT, password: 'x' }], name: 'm' },
      'sentinelPassword, beside',
    ],
  ] as const)('are refused: %s', (field, redis, remedy) => {
    const refused = refusalOf(redis);
    expect(refused).toMatch(/^redis\./);
    expect(refused.startsWith(`redis.${field} is no option of ioredis`), refused).toBe(true);
    expect(refused).toContain(remedy);
    expect(refusalOf([AT, redis])).toMatch(/^redis(\[1\]\.|.*quorum)/);
  });

  it('are refused in a URL, by name, unless it may be a part of a password', () => {
    expect(refusalOf('redis://127.0.0.1:1?ssl_cert_reqs=none')).toMatch(/^redis: the URL .* ssl_cert_reqs/);
    expect(refusalOf({ cluster: ['redis://127.0.0.1:1?tsl=true'] })).toMatch(/^redis: the URL .* tsl/);
    const refused = refusalOf('redis://me?secret=7@127.0.0.1');
    expect(refused).toContain('%40');
    expect(refused).not.toContain('secret');
  });

  it('are told from sentinels that are no objects in a list, which are refused without showing them', () => {
    const url = 'redis://:secret@127.0.0.1:1';
    expect(refusalOf({ sentinels: [url], name: 'm' })).toBe('redis.sentinels[0] must be { host, port }.');
    for (const sentinels of [url, { host: url }, 7])
      expect(refusalOf({ sentinels, name: 'm' })).toBe('redis.sentinels must be a list of { host, port }.');
  });

  it('are allowed as undefined, and in a client, which has its address already', () => {
    expect(warningsOf({ ...AT, url: undefined } as RedisOptions)).toEqual([]);
    const client = new Redis({ ...AT, isMine: true, lazyConnect: true } as RedisOptions);
    expect(named(warningsOf(client))).toEqual(['isMine']);
    const node = { ...AT, isMine: true };
    const cluster = new Cluster([node], { lazyConnect: true });
    expect(warningsOf(cluster)).toEqual([]);
  });

  it('are none of the options that ioredis has a default for', () => {
    const defaults = {
      ...new Redis({ lazyConnect: true }).options,
      ...new Cluster([{}], { lazyConnect: true }).options,
    };
    for (const name of Object.keys(defaults)) {
      // The value may be refused.
      expect.soft(refusalOf({ ...AT, [name]: Symbol('any') }), name).not.toContain('is no option');
    }
  });
});
