import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { channelOf, holdName, Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('pitfall 9: the message of a release overtakes the answer "taken"', () => {
  it('and is not lost: the waiter asks again at once instead of sleeping until the lease ends', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.open({ waitMs: 20_000 }, proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    await waiter.locks.ping();

    // The answers of the waiter's command connection are held back from its second question on: its subscription
    // is live by then, so the message arrives on the other connection while the answer is still on its way.
    let questions = 0;
    const answered = new Promise<void>((resolve) => {
      const stop = proxy.onData((connection, direction, chunk) => {
        if (direction !== 'toServer' || !chunk.includes(holdName(key)) || !/evalsha/i.test(chunk.toString()))
          return;
        questions += 1;
        if (questions !== 2) return;
        stop();
        connection.blackhole(['toClient']);
        resolve();
      });
    });
    const waiting = waiter.locks.acquire(key);
    await within(5_000, answered, 'the second question');
    await until(async () => (await lab.calls())['evalsha'] !== undefined);
    // Redis has answered "taken"; the answer is in the proxy.
    await until(() => proxy.find(holdName(key))[0]!.carried(':', 'toClient'));
    expect(await lease.release()).toBe('released');
    await until(() => proxy.find(channelOf(key)).some((one) => one.carried('message', 'toClient')));
    // The message gets to the client first.
    await lab.admin.ping();
    await new Promise((resolve) => setImmediate(resolve));
    for (const connection of proxy.connections) connection.restore();
    const own = await within(5_000, waiting, 'the waiter');
    expect(await own.release()).toBe('released');
  });

  it('a hundred times, with acquire and release sent at the same moment', async () => {
    const [one, two] = [lab.open({ waitMs: 20_000 }), lab.open({ waitMs: 20_000 })];
    const key = newKey();
    for (let round = 0; round < 100; round += 1) {
      const lease = await one.locks.acquire(key);
      const [own] = await within(
        5_000,
        Promise.all([two.locks.acquire(key), lease.release()]),
        `round ${round}: the waiter`,
      );
      await own.release();
    }
  });
});
