import { EventEmitter, once } from 'node:events';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
// The global ones are wrapped in tests.
import { setInterval, setTimeout } from 'node:timers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LossReport, UnfencedWrite } from 'nest-redis-lock/testing';
import { afterAll, describe, expect, it } from 'vitest';
import type { Lease } from 'nest-redis-lock';
import { FakeClient, fenceOn, setup, WRITE } from './fake-client.js';

const OTHER = "UPDATE orders SET status = 'failed'";

/** A scenario with a fenced write, so that its report is not refused for want of one. */
const world = () => {
  const { locks, client, lose, fence } = setup();
  const second = new FakeClient();
  const sold = new EventEmitter();
  const query = (sql: string = OTHER): Promise<unknown> => client.query(sql);
  /** Commits a fenced write. */
  const save = async (lease: Lease): Promise<void> => {
    await query('BEGIN');
    try {
      await fence(lease);
      await query(WRITE);
      await query('COMMIT');
    } catch (error) {
      await query('ROLLBACK');
      throw error;
    }
  };
  const withLock = (work: (lease: Lease) => unknown): Promise<unknown> => locks.withLock('tea', work);
  const payments = {
    charged: 0,
    work: (): unknown => undefined,
    async charge(): Promise<void> {
      this.charged++;
      await this.work();
    },
  };
  return { locks, client, second, sold, lose, fence, query, save, withLock, payments };
};

type World = ReturnType<typeof world>;
type Scenario = (world: World) => unknown;

const lose = async (scenario: Scenario, calls: { readonly charge?: boolean } = {}): Promise<LossReport> => {
  const here = world();
  const { client, second, payments } = here;
  return here.lose(() => scenario(here), {
    databases: [client, second],
    writes: calls.charge ? [[payments, 'charge']] : [],
  });
};

/** Loses the locks of a scenario everywhere. Returns the reported calls and the reasons. */
const reported = async (scenario: Scenario, calls?: Parameters<typeof lose>[1]): Promise<string[]> => {
  const { unfenced } = await lose(scenario, calls);
  return [...new Set(unfenced.map(({ what, why }) => `${why}: ${what}`))].sort();
};

const charges = (prepare: (world: World, lease: Lease) => () => unknown): Scenario => {
  return (here) =>
    here.withLock(async (lease) => {
      here.payments.work = prepare(here, lease);
      await here.payments.charge();
      await here.save(lease);
    });
};

describe('the report of a safe scenario is green', () => {
  it.each<[string, Scenario]>([
    ['whose write is fenced', ({ withLock, save }) => withLock(save)],
    [
      'that fences behind its write',
      ({ withLock, query, fence }) =>
        withLock(async (lease) => {
          await query('BEGIN');
          await query();
          await fence(lease).catch(async (error: unknown) => {
            await query('ROLLBACK');
            throw error;
          });
          await query('COMMIT');
        }),
    ],
    [
      'that prepares its data before its first lock',
      async ({ withLock, query, save }) => {
        await query('DELETE FROM stock');
        await withLock(save);
      },
    ],
    [
      'that repeats its work under a new lock',
      async ({ withLock, save }) => {
        await withLock(save).catch(() => withLock(save));
      },
    ],
    [
      'that writes under a new lock, which is not lost',
      async ({ locks, withLock, save, query }) => {
        await withLock(save);
        await using lease = await locks.acquire('mint');
        if (await lease.verify()) await query('SELECT 1');
      },
    ],
    [
      'that awaits a timer and an event',
      async ({ sold, withLock, save }) => {
        setTimeout(() => sold.emit('sold'), 1);
        await once(sold, 'sold');
        await withLock(save);
      },
    ],
  ])('%s', async (_, scenario) => {
    await expect(reported(scenario)).resolves.toEqual([]);
  });
});

describe('a write without its lock is reported', () => {
  it.each<[string, Scenario, string[]]>([
    [
      'in a catch around the section',
      ({ withLock, save, query }) => withLock(save).catch(() => query()),
      [`lost: ${OTHER}`],
    ],
    [
      'in a catch of the section',
      ({ withLock, save, query }) => withLock((lease) => save(lease).catch(() => query())),
      [`lost: ${OTHER}`],
    ],
    [
      'in a finally around the section',
      ({ withLock, save, query }) => withLock(save).finally(() => query()),
      [`lost: ${OTHER}`, `unlocked: ${OTHER}`],
    ],
    [
      'in a finally of the section',
      ({ withLock, save, query }) => withLock((lease) => save(lease).finally(() => query())),
      [`lost: ${OTHER}`],
    ],
    [
      'behind the release of a lease',
      async ({ locks, save, query }) => {
        const lease = await locks.acquire('tea');
        await save(lease).finally(() => lease.release());
        await query();
      },
      [`lost: ${OTHER}`, `unlocked: ${OTHER}`],
    ],
    [
      'that is committed behind the release',
      async ({ withLock, save, second }) => {
        await second.query('BEGIN');
        const work = withLock(async (lease) => {
          await second.query(OTHER);
          await save(lease);
        });
        await work.finally(() => second.query('COMMIT'));
      },
      [`lost: ${OTHER}`, `unlocked: ${OTHER}`],
    ],
    [
      'that has no reply at the release',
      ({ withLock, save, query, sold, client }) =>
        withLock(async (lease) => {
          await save(lease);
          client.replies[OTHER] = () => once(sold, 'done').then(() => ({ command: 'UPDATE', rows: [] }));
          void query();
        }).finally(() => void sold.emit('done')),
      [`lost: ${OTHER}`, `unlocked: ${OTHER}`],
    ],
    [
      'in a transaction whose fence was rolled back',
      ({ withLock, save, query, fence }) =>
        withLock(async (lease) => {
          await save(lease);
          await query('BEGIN');
          await fence(lease);
          await query('ROLLBACK');
          await query();
        }),
      [`lost: ${OTHER}`],
    ],
    [
      'on a second connection beside the fence',
      ({ withLock, save, second }) => withLock((lease) => Promise.all([save(lease), second.query(OTHER)])),
      [`lost: ${OTHER}`],
    ],
    [
      'by a listener of the loss',
      ({ locks, withLock, save, query }) => {
        const stop = locks.on('lost', () => void query());
        return withLock(save).finally(stop);
      },
      [`lost: ${OTHER}`],
    ],
    [
      'under a hold that was handed off in this process after its loss',
      ({ withLock, save, query }) => Promise.all([withLock(save), withLock(() => query())]),
      [`lost: ${OTHER}`],
    ],
    [
      'by a timer of a section, under the lock of another one',
      async ({ withLock, save, query, sold }) => {
        await withLock((lease) => {
          setTimeout(() => void query().then(() => sold.emit('done')), 1);
          return save(lease);
        });
        await withLock((lease) => once(sold, 'done').then(() => save(lease)));
      },
      [`lost: ${OTHER}`, `unlocked: ${OTHER}`],
    ],
  ])('%s', async (_, scenario, expected) => {
    await expect(reported(scenario)).resolves.toEqual(expect.arrayContaining(expected));
  });
});

describe('a fence that does not protect is reported', () => {
  it.each<[string, (world: World, lease: Lease) => Promise<unknown>]>([
    [
      'its rejection is swallowed',
      async ({ query, fence }, lease) => {
        await fence(lease).catch(() => undefined);
        await query();
      },
    ],
    [
      'it is not awaited',
      async ({ query, fence }, lease) => {
        void fence(lease).catch(() => undefined);
        await query();
      },
    ],
    [
      'it runs beside the write, and its rejection is swallowed',
      ({ query, fence }, lease) => Promise.allSettled([fence(lease), query()]),
    ],
    [
      'it stands behind the write, and its rejection is swallowed',
      async ({ query, fence }, lease) => {
        await query();
        await fence(lease).catch(() => undefined);
      },
    ],
    [
      'it runs on another connection',
      async ({ query, second }, lease) => {
        await second.query('BEGIN');
        await fenceOn(second, lease);
        await query();
        await second.query('COMMIT');
      },
    ],
    [
      'it is of another lock',
      async ({ locks, query, fence }) => {
        await locks.withLock('mint', fence);
        await query();
      },
    ],
  ])('%s', async (_, work) => {
    const found = await reported((here) =>
      here.withLock(async (lease) => {
        await here.query('BEGIN');
        await work(here, lease).catch(() => undefined);
        await here.query('COMMIT');
      }),
    );
    expect(found).toContain(`lost: ${OTHER}`);
  });

  it('it has the token of the next holder', async () => {
    const { client, locked, fence } = setup();
    let next: Lease | undefined;
    const work = async (lease: Lease): Promise<void> => {
      await client.query('BEGIN');
      await fence(next ?? lease);
      await client.query(WRITE);
      await client.query('COMMIT');
      next = undefined;
    };
    const report = await locked(work, { meanwhile: (lease) => void (next = lease) });
    expect(report.unfenced).toMatchObject([{ why: 'lost', step: 1 }, { noticed: true }]);
  });

  it('a scenario that lets a refusal pass has failed runs, without any meanwhile', async () => {
    const report = await lose(({ withLock, save }) => withLock(save));
    expect(report.failed).toBeGreaterThan(0);
  });
});

describe('a named method that runs without its lock is reported', () => {
  it.each<[string, (world: World, lease: Lease) => () => unknown, string[]]>([
    ['it succeeds', () => () => undefined, ['lost']],
    [
      'it rejects: it may have written before',
      (_, lease) => async () => {
        if (!(await lease.verify())) throw new Error('lost');
      },
      ['rejected'],
    ],
    [
      'it writes, and then fences: where the write belongs is not seen',
      ({ save }, lease) =>
        () =>
          save(lease),
      ['opaque', 'rejected'],
    ],
  ])('%s', async (_, prepare, whys) => {
    const found = await reported(charges(prepare), { charge: true });
    expect(found).toEqual(whys.map((why) => `${why}: Object.charge`));
  });

  it.each<[string, (work: () => Promise<void>) => unknown]>([
    ['a lazy thenable', (work) => ({ then: (done: () => void) => void work().then(done) })],
    ['an iterator', (work) => ({ next: work })],
  ])('it returns %s: when it runs is not seen', async (_, made) => {
    const { locks } = setup();
    const shop = { sell: () => made(async () => undefined) };
    const scenario = () => locks.withLock('tea', () => void shop.sell());
    const { unfenced } = await locks.testing.loseEverywhere(scenario, { writes: [[shop, 'sell']] });
    expect(unfenced).toContainEqual(
      expect.objectContaining({ why: 'unwatched', what: 'Object.sell', step: 0 }),
    );
  });
});

describe('work that the scenario does not await is reported', () => {
  const inSection =
    (start: (world: World) => void): Scenario =>
    (here) =>
      here.withLock(async (lease) => {
        await here.save(lease);
        start(here);
      });

  const background = async ({ query }: World): Promise<void> => {
    for (let i = 0; i < 5; i++) await nextTurn();
    await query();
  };

  it.each<[string, Scenario]>([
    ['setTimeout', inSection(({ query }) => setTimeout(() => void query(), 1))],
    ['setImmediate', inSection(({ query }) => setImmediate(() => void query()))],
    ['an async function', inSection((here) => void background(here))],
    ['a listener', inSection((here) => here.sold.once('sold', () => void background(here)).emit('sold'))],
    [
      'the executor of a promise',
      inSection((here) => void new Promise((done) => void background(here).then(done))),
    ],
    [
      'a microtask behind the section',
      async (here) => {
        await inSection(() => undefined)(here);
        queueMicrotask(() => void here.query());
      },
    ],
  ])('a write by %s', async (_, scenario) => {
    const found = await reported(scenario);
    expect(found.filter((one) => /^(unlocked|unawaited|lost): /.test(one))).not.toEqual([]);
  });

  it.each<[string, Scenario]>([
    ['a timer', inSection(({ query }) => setTimeout(() => void query(), 600_000).unref())],
    ['an interval', inSection(({ query }) => setInterval(() => void query(), 600_000).unref())],
    [
      'a function that waits for an event',
      inSection(
        ({ sold, query }) =>
          void (async () => {
            await new Promise((done) => sold.once(`never ${performance.now()}`, done));
            await query();
          })(),
      ),
    ],
    [
      'a reaction to a promise',
      inSection(
        ({ sold, query }) =>
          void new Promise((done) => sold.once(`never ${performance.now()}`, done)).then(() => query()),
      ),
    ],
  ])('%s that is left, by its line', async (_, scenario) => {
    const { unfenced } = await lose(scenario);
    const left = unfenced.filter(({ why }) => why === 'unawaited');
    expect(left).toContainEqual(
      expect.objectContaining({ step: 0, at: expect.stringMatching(/lose-unsafe\.spec\.ts/) }),
    );
  });

  it('a transaction with a write that is left open, also when its connection was released', async () => {
    const found = await reported(({ withLock, save, second }) =>
      withLock(async (lease) => {
        await save(lease);
        await second.query('BEGIN');
        await second.query(OTHER);
        second.release();
      }),
    );
    expect(found).toEqual([`unawaited: ${OTHER}`]);
  });
});

describe('a call of a watched object that cannot be followed is reported', () => {
  const called = (call: (client: FakeClient) => unknown) =>
    reported(({ withLock, save, client }) =>
      withLock(async (lease) => {
        await save(lease);
        await call(client);
      }),
    );

  it.each<[string, (client: FakeClient) => unknown, string[]]>([
    ['with a callback', (client) => client.query(OTHER, () => undefined), [`unwatched: ${OTHER}`]],
    [
      'of a stream',
      (client) => client.query({ submit: () => undefined, text: OTHER }),
      [`unwatched: ${OTHER}`],
    ],
    [
      'without a text',
      (client) => client.query({ submit: () => undefined }),
      ['unwatched: FakeClient.query'],
    ],
    ['that reads', (client) => client.query({ submit: () => undefined, text: 'SELECT 1' }), []],
  ])('%s', async (_, call, expected) => {
    await expect(called(call)).resolves.toEqual(expected);
  });

  it('several statements that fail: the first may have been committed', async () => {
    const two = `${OTHER}; nonsense`;
    const found = await reported(({ withLock, save, client }) =>
      withLock(async (lease) => {
        await save(lease);
        client.replies[two] = () => Promise.reject(new Error('syntax'));
        await client.query(two).catch(() => undefined);
      }),
    );
    expect(found).toEqual([`rejected: ${two}`]);
  });
});

/** A pool with the marks of one of `pg`: it sends statements by its client, and passes results to callbacks. */
class CallbackPool {
  readonly totalCount = 1;
  constructor(private readonly client: FakeClient) {}
  connect(callback?: (error: null, client: FakeClient) => void): Promise<FakeClient> | undefined {
    if (!callback) return Promise.resolve(this.client);
    callback(null, this.client);
    return undefined;
  }
  query(text: string): Promise<unknown> {
    return new Promise((done) => void this.connect((_, client) => void client.query(text, done)));
  }
}

describe('a pool whose clients are passed to callbacks', () => {
  const lost = async (work: (pool: CallbackPool) => unknown): Promise<string[]> => {
    const here = world();
    const client = new FakeClient();
    const pool = new CallbackPool(client);
    const { unfenced } = await here.lose(
      () =>
        here.withLock(async (lease) => {
          await here.save(lease);
          await work(pool);
        }),
      { databases: [here.client, pool] },
    );
    return [...new Set(unfenced.map(({ what, why }) => `${why}: ${what}`))];
  };

  it('is one call for a statement of its own', async () => {
    await expect(lost((pool) => pool.query(OTHER))).resolves.toEqual([`lost: ${OTHER}`]);
  });

  it('a statement in the callback is reported', async () => {
    const work = (pool: CallbackPool): void =>
      void pool.connect((_, client) => void client.query(OTHER, () => undefined));
    await expect(lost(work)).resolves.toEqual([`unwatched: ${OTHER}`]);
  });
});

describe('data that the scenario sends on a socket', () => {
  const server = createServer((socket) => socket.resume().on('error', () => undefined));
  const port = async (): Promise<number> => {
    if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  };
  afterAll(() => void server.close());

  it('is reported, also with the end of the connection', async () => {
    const to = await port();
    const found = await reported(({ withLock, save }) =>
      withLock(async (lease) => {
        await save(lease);
        const socket = connect(to, '127.0.0.1');
        await once(socket, 'connect');
        socket.end('label 7');
        await once(socket, 'close');
      }),
    );
    expect(found).toEqual([`unwatched: Socket.write to 127.0.0.1:${to}`]);
  });

  it('is reported on a connection that came in before, and is no reply', async () => {
    const accepted = once(server, 'connection');
    const device = connect(await port(), '127.0.0.1');
    const [valve] = (await accepted) as [Socket];
    const found = await reported(({ withLock, save }) =>
      withLock(async (lease) => {
        await save(lease);
        valve.write('open');
      }),
    );
    device.destroy();
    expect(found).toEqual([expect.stringMatching(/^unwatched: Socket.write to 127\.0\.0\.1/)]);
  });

  it('is not judged before the first lock', async () => {
    const to = await port();
    const found = await reported(async ({ withLock, save }) => {
      const socket = connect(to, '127.0.0.1');
      await once(socket, 'connect');
      socket.end('reset');
      await once(socket, 'close');
      await withLock(save);
    });
    expect(found).toEqual([]);
  });

  it('leaves the replacement of another package in place', async () => {
    const own = Object.getOwnPropertyDescriptor(Socket.prototype, 'write');
    const other = (): boolean => true;
    await lose(({ withLock, save }) =>
      withLock((lease) => {
        Object.defineProperty(Socket.prototype, 'write', {
          value: other,
          configurable: true,
          writable: true,
        });
        return save(lease);
      }),
    );
    expect(Reflect.get(Socket.prototype, 'write')).toBe(other);
    if (own) Object.defineProperty(Socket.prototype, 'write', own);
    else Reflect.deleteProperty(Socket.prototype, 'write');
  });
});

describe('a scenario that does not do what the options say', () => {
  it('is refused when a method that writes names is never called: the service has another object', async () => {
    await expect(lose(({ withLock, save }) => withLock(save), { charge: true })).rejects.toThrow(
      'saw no call of Object.charge',
    );
  });
});

describe('what the report says', () => {
  it('an entry has its reason in words, and except gets it', async () => {
    const here = world();
    const left: UnfencedWrite[] = [];
    const report = await here.lose(() =>
      here.withLock(async (lease) => {
        await here.save(lease);
        setTimeout(() => undefined, 600_000).unref();
      }),
    );
    expect(() => report.throwIfUnfenced()).toThrow(
      /1 call was not seen.*setTimeout.*lose-unsafe\.spec\.ts.*await/s,
    );
    const excepted = await here.lose(
      () => here.withLock((lease) => (setTimeout(() => 1, 600_000).unref(), here.save(lease))),
      {
        except: (write) => left.push(write) > 0,
      },
    );
    expect(excepted.unfenced).toEqual([]);
    expect(left[0]).toMatchObject({ why: 'unawaited', lostBefore: '', step: 0, noticed: false });
  });
});
