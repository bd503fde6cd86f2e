import { Body, Controller, Injectable, Post } from '@nestjs/common';
import { currentLease, Locked, LockKeyError, lockKey } from 'nest-redis-lock';
import { afterEach, describe, expect, it } from 'vitest';
import { deferred, until, type Deferred } from '../support/async.js';
import { useApps, rootModule } from '../support/nest/apps.js';
import { PLATFORMS, startHttp } from '../support/nest/http.js';
import { useWorld } from '../support/nest/world.js';
import { codeOf } from './support/replies.js';
import { HOSTILE_TEXTS } from './support/hostile-texts.js';
import { keySpaceOf, plantBystanders, rawName, touchedBetween } from './support/key-space.js';

/*
 * That different arguments never make one key is proven for templates of any kind in test/unit/key. Here strangers
 * choose the arguments of locked methods in an app, and Redis is looked at.
 */
const world = useWorld();
afterEach(async () => {
  await world.redis.flushall();
  world.takeRuns();
});
const apps = useApps();

let inside: string[] = [];
let everybodyIsIn: Deferred<void>;

@Injectable()
class Orders {
  /** Holds its lock until the test lets everybody go. */
  @Locked('order:<<customer>>:<<item>>')
  async meet(customer: string, item: string): Promise<string> {
    inside.push(currentLease().key);
    await everybodyIsIn.promise;
    return `${customer} has ${item}`;
  }

  @Locked('<<customer>>')
  async alone(customer: string): Promise<{ customer: string; key: string }> {
    return { customer, key: currentLease().key };
  }
}

const startOrders = async () => {
  inside = [];
  everybodyIsIn = deferred();
  return (await apps.context(rootModule(world.options(), { providers: [Orders] }))).get(Orders);
};

/** Hostile texts that fit into a key twice and escaped, and some that differ only in where they are cut. */
const ARGUMENTS = [
  ...Object.values(HOSTILE_TEXTS).filter((text) => text.length < 1_000),
  'a',
  'a:b',
  ':',
  '::',
  'a%3Ab',
  '%',
  '{a}',
  '}',
];

describe('hostile arguments of a locked method', () => {
  it('never meet: each pair of them is a lock of its own, and all are held at the same time', async () => {
    const orders = await startOrders();
    const refused: unknown[] = [];
    const calls = ARGUMENTS.flatMap((customer) =>
      ARGUMENTS.map((item) => orders.meet(customer, item).catch((error: unknown) => refused.push(error))),
    );
    await until(() => inside.length + refused.length === calls.length, { what: 'all have answered' });
    expect(refused).toEqual([]);
    expect(await world.holds()).toHaveLength(calls.length);
    expect(new Set(inside).size).toBe(calls.length);
    everybodyIsIn.resolve();
    await Promise.all(calls);
    expect(await world.holds()).toEqual([]);
  });

  it('touch what the template names and nothing else, and are what lockKey makes of them', async () => {
    const orders = await startOrders();
    await plantBystanders(world.redis);
    const before = await keySpaceOf(world.redis);
    const expected = ARGUMENTS.map((item) => `lock:${lockKey('order:<<c>>:<<item>>', { c: 'x', item })}`);
    const calls = ARGUMENTS.map((item) => orders.meet('x', item));
    await until(() => inside.length === calls.length, { what: 'all are in' });
    const whileHeld = await keySpaceOf(world.redis);
    expect(touchedBetween(before, whileHeld).sort()).toEqual(expected.map(rawName).sort());
    everybodyIsIn.resolve();
    await Promise.all(calls);
    expect(touchedBetween(before, await keySpaceOf(world.redis))).toEqual([]);
  });

  it('that are a whole key by themselves still cannot leave their prefix, nor name a slot or a channel', async () => {
    const orders = await startOrders();
    for (const argument of ARGUMENTS) {
      const { key } = await orders.alone(argument);
      expect([...key].filter((character) => character < ' ' || ':{}'.includes(character))).toEqual([]);
      expect(decodeURIComponent(key)).toBe(argument);
    }
  });

  it('of half a megabyte are refused before the method runs, without being shown', async () => {
    const orders = await startOrders();
    const long = 'secret'.repeat(90_000);
    const error: unknown = await orders.meet('x', long).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockKeyError);
    expect((error as Error).message).not.toContain('secret');
    expect(await codeOf(orders.alone(`${long}:`))).toBe('LOCK_KEY_INVALID');
    expect(inside).toEqual([]);
  });
});

interface Cart {
  readonly user: object;
}

@Controller()
class CartController {
  @Post('proto')
  @Locked('cart:<<cart.user.__proto__.shared>>')
  async proto(@Body() cart: Cart): Promise<string> {
    return this.keyFor(cart);
  }

  @Post('constructor')
  @Locked('cart:<<cart.user.constructor.name>>')
  async construct(@Body() cart: Cart): Promise<string> {
    return this.keyFor(cart);
  }

  @Post('inherited')
  @Locked('cart:<<cart.user.shared>>')
  async inherited(@Body() cart: Cart): Promise<string> {
    return this.keyFor(cart);
  }

  private async keyFor({ user }: Cart): Promise<string> {
    const { key } = currentLease();
    expect(user).toBeTypeOf('object');
    await world.work(key);
    return key;
  }
}

describe.each(PLATFORMS)('what every object has is never in a key, on %s:', (platform) => {
  const post = async (path: string, json: string) => {
    const http = await startHttp(
      apps,
      platform,
      rootModule(world.options(), { controllers: [CartController] }),
    );
    const headers = { 'content-type': 'application/json' };
    const response = await http.get(path, { method: 'POST', headers, body: json });
    return { status: response.status, text: await response.text() };
  };
  const isRefused = { status: 400, text: expect.stringContaining('LOCK_KEY_INVALID') as string };

  it.each(['/proto', '/constructor', '/inherited'])('a path to it is refused (%s)', async (path) => {
    expect(await post(path, '{"user":{}}')).toEqual(isRefused);
    expect(await post(path, '{"user":{"__proto__.shared":"x","prototype":{"shared":"x"}}}')).toEqual(
      isRefused,
    );
    expect(world.takeRuns()).toEqual([]);
  });

  it('nor is it when something else in the process has polluted it', async () => {
    Object.defineProperty(Object.prototype, 'shared', { value: 'everybody', configurable: true });
    try {
      expect(await post('/inherited', '{"user":{}}')).toEqual(isRefused);
      expect(await post('/proto', '{"user":{}}')).toEqual(isRefused);
    } finally {
      delete (Object.prototype as { shared?: unknown }).shared;
    }
    expect(world.takeRuns()).toEqual([]);
  });

  it('a body that brings such a name of its own changes no other object, and no lock but its own', async () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const { status, text } = await post('/proto', '{"user":{"__proto__":{"shared":"mine"}}}');
    // Fastify refuses such a body; Express passes it on, and then the name is a property like any other.
    expect([status, text.includes('cart:mine')]).toEqual(platform === 'fastify' ? [400, false] : [201, true]);
    expect((await post('/constructor', '{"user":{"constructor":{"name":"mine"}}}')).text).toBe('cart:mine');
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect('shared' in {}).toBe(false);
  });
});
