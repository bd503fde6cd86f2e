import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { RedisServer } from '../../support/redis-server.js';
import { Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;
let otherServer: RedisServer;

beforeAll(async () => {
  [lab, otherServer] = await Promise.all([Lab.start(), RedisServer.start()]);
});

afterEach(() => lab.reset());

afterAll(async () => {
  await lab[Symbol.asyncDispose]();
  await otherServer.stop();
});

describe('pitfall 1: reentrancy', () => {
  it('does not let a lock of another service in: same key, another Redis', async () => {
    const [here, there] = [lab.open(), lab.open({}, otherServer.url)];
    const key = newKey();
    await here.locks.withLock(key, () =>
      there.locks.withLock(key, async () => {
        expect(await otherServer.cli('EXISTS', `lock:${key}`), 'it is really held there').toBe(1);
        await here.locks.withLock(key, () => expect(there.locks.held()).toHaveLength(1));
      }),
    );
    expect(await otherServer.cli('EXISTS', `lock:${key}`)).toBe(0);
  });

  it('does not let it in either when the other service has a section of its own open', async () => {
    const [here, there] = [lab.open(), lab.open({}, otherServer.url)];
    const [key, another] = [newKey(), newKey()];
    await here.locks.withLock(key, () =>
      there.locks.withLock(another, () =>
        there.locks.withLock(key, async () => {
          expect(await otherServer.cli('EXISTS', `lock:${key}`), 'it is really held there').toBe(1);
        }),
      ),
    );
  });

  it('does not let a second service of the same process in: same key, same Redis', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, async () => {
      expect(await two.locks.tryAcquire(key)).toBeNull();
    });
  });

  it('does not take one final key for another: the prefix is a part of it', async () => {
    const [plain, prefixed] = [lab.open({ keyPrefix: '' }), lab.open({ keyPrefix: 'app:' })];
    const key = newKey();
    await plain.locks.withLock(key, () =>
      prefixed.locks.withLock(key, async () => {
        expect(await lab.admin.exists(key, `app:${key}`)).toBe(2);
      }),
    );
    // And two ways to the same final key exclude each other.
    await plain.locks.withLock(`app:${key}`, async () => {
      expect(await prefixed.locks.tryAcquire(key)).toBeNull();
    });
  });
});
