import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashTag } from '../../../../lib/stores/key-rule.js';
import { hashSlot, tagOfSlot } from '../../../../lib/stores/redis/hash-slot.js';
import { RedisServer } from '../../../support/servers/redis-server.js';

const SLOTS = 16_384;

describe('slots', () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await RedisServer.start({ cluster: true });
    client = new Redis(server.clientOptions());
  });

  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });

  const slotsOfRedis = async (names: readonly string[]): Promise<number[]> => {
    const pipeline = client.pipeline();
    for (const name of names) pipeline.call('CLUSTER', 'KEYSLOT', name);
    return (await pipeline.exec())!.map(([error, slot]) => {
      if (error) throw error;
      return slot as number;
    });
  };

  it('are those of CLUSTER KEYSLOT, for names of every sort', async () => {
    const names = [
      '',
      'a',
      '123456789',
      'lock:order:42',
      'ключ',
      '鍵:{租户}:1',
      'emoji 😀 {😀}',
      '\u0000\u0001\u007f\u0080\u00ff',
      '{a}b',
      'b{a}',
      'x{a}y{b}z',
      '{}',
      '{}a',
      'a{}b{c}',
      '{a',
      'a}',
      '}{',
      '{{a}}',
      '{a}{a}',
      'x{ä}y',
      'x'.repeat(10_000),
      ...Array.from({ length: 2_000 }, (_, i) => `key:${i}:${(i * 7_919) % 1_000}`),
    ];
    expect(names.map(hashSlot)).toEqual(await slotsOfRedis(names));
  });

  it('each of the 16,384 has a tag, which Redis puts into that slot', async () => {
    const tags = Array.from({ length: SLOTS }, (_, slot) => tagOfSlot(slot));
    expect(new Set(tags).size).toBe(SLOTS);
    expect(tags.every((tag) => /^\d{1,6}$/.test(tag))).toBe(true);
    const slots = await slotsOfRedis(tags.map((tag) => `nest_redis_lock:fence:{${tag}}`));
    expect(slots).toEqual(tags.map((_, slot) => slot));
  });

  it('the tags never change: a token key must not move with a version of this library', () => {
    expect([0, 1, 2, 5_798, 12_182, 16_383].map(tagOfSlot)).toMatchSnapshot();
  });
});

describe('hashTag', () => {
  it.each([
    ['plain', 'plain'],
    ['a{b}c', 'b'],
    ['a{b}{c}', 'b'],
    ['a{{b}}', '{b'],
    ['a{}{b}', 'a{}{b}'],
    ['a{b', 'a{b'],
    ['a}b{', 'a}b{'],
    ['}{c}', 'c'],
  ])('of %j is %j', (name, tag) => {
    expect(hashTag(name)).toBe(tag);
  });
});
