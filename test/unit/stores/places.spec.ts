import { afterEach, describe, expect, it } from 'vitest';
import { MysqlStore } from '../../../lib/entries/mysql.js';
import { PostgresStore } from '../../../lib/entries/postgres.js';
import { QuorumStore, RedisStore } from '../../../lib/entries/redis.js';
import { ZooKeeperStore } from '../../../lib/entries/zookeeper.js';

const stores: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});
const placeOf = <S extends { readonly place?: string; close(): Promise<void> }>(store: S): string => {
  stores.push(store);
  return store.place!;
};
const redis = (address: ConstructorParameters<typeof RedisStore>[0]['redis']): RedisStore =>
  new RedisStore({ redis: address });
const quorum = (...urls: readonly string[]): QuorumStore => new QuorumStore({ nodes: urls.map(redis) });
const behind = (host: string): RedisStore => redis({ sentinels: [{ host }], name: 'mymaster' });

describe('the place of a store', () => {
  it.each([
    ['Redis, with a login', () => redis('redis://me:secret@shop:7000/3'), 'Redis shop:7000/3/'],
    ['Redis, with a prefix', () => redis({ host: 'shop', keyPrefix: 'a:' }), 'Redis shop:6379/0/a:'],
    ['Sentinel', () => behind('one'), 'Redis one:26379/mymaster/0/'],
    ['a cluster', () => redis({ cluster: ['redis://:secret@shop:7000'] }), 'Redis the cluster at shop:7000/'],
    ['a quorum', () => quorum('redis://b', 'redis://a'), 'Redis a:6379/0/, Redis b:6379/0/'],
    [
      'PostgreSQL',
      () => new PostgresStore({ connectionString: 'postgres://me:secret@Shop/app' }),
      'PostgreSQL shop:5432/app//nest_lock',
    ],
    [
      'MySQL, by its address',
      () => new MysqlStore({ uri: 'mysql://me:secret@shop/app' }),
      'MySQL shop:3306/app/nest_lock',
    ],
    [
      'MySQL, by options',
      () => new MysqlStore({ options: { host: 'shop', database: 'app', password: 'secret' } }),
      'MySQL shop:3306/app/nest_lock',
    ],
    [
      'ZooKeeper',
      () => new ZooKeeperStore({ connect: 'b,a:1/app', auth: { digest: 'me:secret' } }),
      'ZooKeeper a:1,b:2181/app/locks',
    ],
  ] as const)('is one text for all that use the same locks, and has no login: %s', (_what, store, place) => {
    expect(placeOf(store())).toBe(place);
  });

  it('is another one with other sentinels, whose masters have one name', () => {
    expect(placeOf(behind('one'))).not.toBe(placeOf(behind('two')));
  });
});
