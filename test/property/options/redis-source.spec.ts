import { Redis, type RedisOptions } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { RedisStore, type RedisLike } from 'nest-redis-lock/redis';
import { resolveEndpoint } from '../../../lib/stores/redis/connection/redis-settings.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { expectAccepted, expectRefusal, outcomeOf } from './refusal.js';

/** Makes both clients, but connects none: an address that was made up would be looked for. */
const resolve = (redis: unknown) =>
  outcomeOf(() => {
    const endpoint = resolveEndpoint(redis as never, 1_000);
    return [endpoint.createClient('commands'), endpoint.createClient('subscriber')] as const;
  });

const optionsOf = ([client]: readonly [RedisLike, RedisLike]): RedisOptions => client.options;

const NOWHERE = { host: '127.0.0.1', port: 1 };

describe('the option redis', () => {
  it('is taken, or refused by name: whatever it is, nothing else is thrown', async () => {
    const plausible = [
      NOWHERE,
      {},
      [],
      [NOWHERE],
      Promise.resolve(NOWHERE),
      { call: 7 },
      ' ',
      'redis://x:y:z',
    ];
    await forAnyValue(plausible, async (value) => {
      const outcome = await resolve(value);
      if ('thrown' in outcome) return expectRefusal(outcome, 'redis');
      // What has no address at all must not pass for localhost.
      const kind = Object.prototype.toString.call(value);
      expect(kind === '[object Object]' || (typeof value === 'string' && value.trim() !== '')).toBe(true);
    });
  });

  it.each([
    ['redis://127.0.0.1:7000', { host: '127.0.0.1', port: 7_000, db: 0 }],
    ['redis://me:p%40ss@127.0.0.1:7000/3', { port: 7_000, db: 3, username: 'me', password: 'p@ss' }],
    ['rediss://127.0.0.1', { tls: expect.anything() }],
    ['127.0.0.1:7000', { host: '127.0.0.1', port: 7_000 }],
    ['/run/redis.sock', { path: '/run/redis.sock' }],
  ])('as the text %s is where it says', async (url, address) => {
    expect(optionsOf(expectAccepted(await resolve(url), 'redis'))).toMatchObject(address);
  });

  it.each([
    'http://127.0.0.1',
    'valkeys://127.0.0.1',
    'redis://127.0.0.1:99999',
    'redis://127.0.0.1:-1',
    'redis://127.0.0.1/orders',
    'redis://:%zz@127.0.0.1',
    'redis://:secret@[::',
    'redis:/:secret@127.0.0.1',
    'secret@127.0.0.1:7000',
    'redis//127.0.0.1',
    ' redis://127.0.0.1',
    '   ',
  ])('as the text %j is refused', async (url) => {
    const outcome = await resolve(url);
    expectRefusal(outcome, 'redis');
    const { message, cause } = (outcome as { thrown: Error }).thrown;
    expect(`${message} ${JSON.stringify(cause ?? '')}`).not.toContain('secret');
  });

  const asText = (value: unknown): unknown => (typeof value === 'number' ? value.toString() : value);
  const isText = (value: unknown): boolean => typeof value === 'string';
  const isHost = (value: unknown): boolean => isText(value) && value !== '' && !String(value).includes('@');
  const isWhole = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
  /** Environment variables are texts, and ioredis takes them. */
  const isCount = (max: number) => (value: unknown) =>
    (isWhole(value) && (value as number) <= max) ||
    (typeof value === 'string' && /^\d+$/.test(value) && Number(value) <= max);

  it.each([
    // An empty one is what an unset variable often is, and ioredis would take it for localhost. An @ ends a login.
    ['host', isHost, ['127.0.0.1', '', 'me:secret@127.0.0.1']],
    ['username', isText, ['me']],
    ['password', isText, ['p@ss']],
    ['port', isCount(65_535), [0, 6379, '6379', 65_535, 65_536]],
    ['db', isCount(2 ** 31 - 1), [0, 15, '15']],
  ] as const)('with %s: used as it is, or refused by name', async (name, isGood, examples) => {
    await forAnyValue(examples, async (value) => {
      const outcome = await resolve({ ...NOWHERE, [name]: value });
      // ioredis, too, takes null for "not given".
      if (value === undefined || value === null) return void expectAccepted(outcome, name);
      if (!isGood(value)) return expectRefusal(outcome, `redis\\.${name}`);
      expect(asText(optionsOf(expectAccepted(outcome, name))[name])).toBe(asText(value));
    });
  });

  it('with a field that ioredis does not have is refused by name, whatever its value', async () => {
    for (const name of ['url', 'socket', 'isMine']) {
      await forAnyValue([], async (value) => {
        const outcome = await resolve({ ...NOWHERE, [name]: value });
        if (value === undefined) expectAccepted(outcome, name);
        else expectRefusal(outcome, `redis\\.${name}`);
      });
    }
  });

  it('with a password that is no text is refused without showing it', async () => {
    const outcome = await resolve({ ...NOWHERE, password: 271_828_182 });
    expectRefusal(outcome, 'redis\\.password');
    expect((outcome as { thrown: Error }).thrown.message).not.toContain('271828182');
  });

  it.each([
    ['host', { host: 'me:secret@127.0.0.1', port: 1 }],
    ['cluster', { cluster: [{ host: 'me:secret@127.0.0.1', port: 1 }] }],
    ['sentinels', { sentinels: [{ host: 'me:secret@127.0.0.1', port: 1 }], name: 'mymaster' }],
  ])('with a login in %s is refused without showing it', async (name, redis) => {
    const outcome = await outcomeOf(() => new RedisStore({ redis }));
    expectRefusal(outcome, name);
    expect((outcome as { thrown: Error }).thrown.message).not.toContain('secret');
  });

  it('as a function gives clients, or is refused by name', async () => {
    await forAnyValue([], async (value) => {
      expectRefusal(await resolve(() => value), 'redis');
    });
  });

  it('as a function whose second client is none leaves the first unconnected', async () => {
    const first = new Redis({ ...NOWHERE, lazyConnect: true });
    const redis = ((role: string) => (role === 'commands' ? first : 7)) as never;
    expectRefusal(await outcomeOf(() => new RedisStore({ redis })), 'redis');
    expect(first.status).toBe('wait');
  });
});
