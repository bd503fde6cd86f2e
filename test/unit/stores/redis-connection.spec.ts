import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import type { RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';
import { RedisConnection } from '../../../lib/stores/redis/connection/redis-connection.js';
import { replyError, type RedisFailure } from '../../../lib/stores/redis/connection/redis-failure.js';
import { nameSession } from '../../../lib/stores/redis/connection/redis-session.js';
import { Script } from '../../../lib/stores/redis/connection/script.js';
import { CommandDeadlines } from '../../../lib/stores/load/command-deadlines.js';

/** A client whose server takes everything; `packets` says how many commands were in each. */
class TakingClient extends EventEmitter {
  readonly status = 'ready';
  readonly options = {};
  readonly packets: number[] = [];
  stream = this.connect();

  connect(): Writable {
    return (this.stream = new Writable({
      write: (_chunk, _encoding, done) => {
        this.packets.push(1);
        done();
      },
      writev: (chunks, done) => {
        this.packets.push(chunks.length);
        done();
      },
    }));
  }

  call(): Promise<unknown> {
    this.stream.write('a command');
    return Promise.resolve('OK');
  }

  disconnect(): void {
    this.stream.destroy();
  }
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const connected = async (batchParts: ConstructorParameters<typeof RedisConnection>[1]['batchParts']) => {
  const client = new TakingClient();
  const connection = new RedisConnection(client as unknown as RedisLike, {
    timeoutMs: 1_000,
    runtime: systemRuntime(),
    batchParts,
  });
  await connection.opened();
  client.packets.length = 0;
  return { client, connection };
};

describe('a connection where no script can be run for several keys', () => {
  it('sends what is asked for in one tick in one packet, and what is alone at once', async () => {
    const { client, connection } = await connected([]);
    const request = (): Promise<unknown> => connection.send({ command: 'get', args: ['a'], read: String });
    const first = request();
    expect(client.packets).toEqual([1]);
    await Promise.all([first, ...Array.from({ length: 9 }, request)]);
    await tick();
    expect(client.packets).toEqual([1, 9]);
    await Promise.all([request(), request(), request()]);
    await tick();
    expect(client.packets).toEqual([1, 9, 1, 2]);
    connection.close();
  });

  it('leaves that to a script where there is one', async () => {
    const part = { letter: 'g', script: new Script('return 1'), keys: 1, args: 1, shared: 0 };
    const { client, connection } = await connected([part]);
    const run = (): Promise<unknown> => connection.runShared({ part, keys: ['a'], args: ['p:1'] }, String);
    const requested = Promise.allSettled([run(), run(), run()]);
    await tick();
    expect(client.packets).toEqual([1, 1]);
    await requested;
    connection.close();
  });
});

describe('a new connection on a narrow way', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Loads three scripts; each reply takes this long after the one before. */
  const load = async (exist: unknown, replyMs: number) => {
    const client = new TakingClient();
    const loaded: string[] = [];
    const runtime = systemRuntime();
    let replyAt = 0;
    client.call = (...[command, what, text]: string[]) => {
      if (command !== 'script') return Promise.resolve('id=7 addr=here');
      if (what === 'exists') return Promise.resolve(exist);
      loaded.push(text!);
      replyAt += replyMs;
      return new Promise((resolve) => void runtime.setTimer(() => resolve('OK'), replyAt));
    };
    const scripts = ['return 1', 'return 2', 'return 3'].map((source) => new Script(source));
    const deadlines = new CommandDeadlines(1_000, runtime);
    const named = nameSession(client as unknown as RedisLike, scripts, deadlines, () => undefined);
    await vi.advanceTimersByTimeAsync(5_000);
    return { id: (await named).id, loaded, ended: client.stream.destroyed, idle: deadlines.idle };
  };

  it('lasts, however long all scripts take, while the server replies to one after the other', async () => {
    const loaded = ['return 1', 'return 2', 'return 3'];
    expect(await load([0, 0, 0], 900)).toEqual({ id: '7', loaded, ended: false, idle: true });
    expect((await load([0, 0, 0], 1_200)).ended).toBe(true);
  });

  it('is waited for by each request for its own time, and is no outage meanwhile', async () => {
    const client = new TakingClient();
    const runtime = systemRuntime();
    const load = client.call.bind(client);
    let loadsMs = 0;
    client.call = (...[, what]: string[]) => {
      if (what !== 'load') return load();
      loadsMs += 400;
      return new Promise((resolve) => void runtime.setTimer(() => resolve('OK'), loadsMs));
    };
    const scripts = Array.from({ length: 6 }, (_, i) => new Script(`return ${i}`));
    const connection = new RedisConnection(client as unknown as RedisLike, {
      ...{ timeoutMs: 1_000, runtime, scripts },
    });
    const ask = (waitMs: number) =>
      connection
        .run(scripts[0]!, ['a'], [], String, { until: runtime.now() + waitMs })
        .then(String, ({ message, transient }: RedisFailure) => ({ message, transient }));
    const replies = [ask(300), ask(1_500), ask(5_000)];
    const late = {
      message: 'the scripts of the locks were still on their way to Redis: that way is narrow',
      transient: true,
    };
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await Promise.all(replies)).toEqual([late, late, 'OK']);
    connection.close();
  });

  it.each([
    ['lacks some', [1, 0, 1], ['return 2']],
    ['has all', [1, 1, 1], []],
    ['does not tell', undefined, ['return 1', 'return 2', 'return 3']],
  ])('loads only what the server lacks: it %s', async (_, exist, loaded) => {
    expect(await load(exist, 1)).toEqual({ id: '7', loaded, ended: false, idle: true });
  });
});

/** A client whose connection ends with the first command of a burst, and then lasts. */
class FlappingClient extends TakingClient {
  endsAt = '';
  private hasEnded = false;

  override call(...[, ...args]: unknown[]): Promise<unknown> {
    if (this.endsAt !== '' && args.includes(this.endsAt)) {
      this.endsAt = '';
      this.hasEnded = true;
      this.emit('close');
    }
    if (this.hasEnded)
      return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    return Promise.resolve('OK');
  }

  override disconnect(): void {
    // It connects when the test says so.
  }

  again(): void {
    this.hasEnded = false;
    this.emit('ready');
  }
}

describe('a connection that ends while many requests begin on it', () => {
  it('keeps no place for them on the next one', async () => {
    const client = new FlappingClient();
    const runtime = systemRuntime();
    const connection = new RedisConnection(client as unknown as RedisLike, { timeoutMs: 5_000, runtime });
    await connection.opened();
    const asked = (key: string): Promise<unknown> =>
      connection.send({ command: 'get', args: [key], read: String, keys: [key], urgency: 'other' });
    client.emit('close');
    const burst = Array.from({ length: 100 }, (_, i) => asked(`${i}`));
    client.endsAt = '0';
    client.again();
    await tick();
    client.again();
    expect(new Set(await Promise.all(burst))).toEqual(new Set(['OK']));
    await expect(asked('later')).resolves.toBe('OK');
    connection.close();
  });
});

/** A client whose connection is gone, and which has not heard of that. */
class GoneClient extends TakingClient {
  isGone = false;
  requested = 0;

  override call(): Promise<unknown> {
    if (this.isGone) {
      return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    }
    this.requested += 1;
    return Promise.resolve('OK');
  }
}

describe('what is asked on a connection that has ended, before that is heard of', () => {
  const gone = async (timeoutMs: number) => {
    const client = new GoneClient();
    const connection = new RedisConnection(client as unknown as RedisLike, {
      timeoutMs,
      runtime: systemRuntime(),
    });
    await connection.opened();
    client.isGone = true;
    client.requested = 0;
    const requested = connection.send({ command: 'get', args: ['a'], read: String });
    return { client, connection, requested };
  };

  it('waits for the next one, and is asked there once', async () => {
    const { client, connection, requested } = await gone(5_000);
    await tick();
    expect(connection.current).toBeUndefined();
    client.isGone = false;
    client.connect();
    client.emit('close');
    client.emit('ready');
    expect(await requested).toBe('OK');
    // The connection first asks whether the server serves, and for its name.
    expect(client.requested).toBe(3);
    connection.close();
  });

  it('fails when there is none within the time-out: it was not done', async () => {
    const { connection, requested } = await gone(20);
    await expect(requested).rejects.toMatchObject({
      message: 'there was no connection to Redis within 20 ms',
      outcome: 'not-executed',
    });
    connection.close();
  });
});

describe('a connection whose server does not execute commands', () => {
  class RefusingClient extends TakingClient {
    reply: string | undefined;

    override call(): Promise<unknown> {
      return this.reply === undefined ? Promise.resolve('OK') : Promise.reject(replyError(this.reply));
    }
  }
  const refusing = (reply: string) => {
    const client = new RefusingClient();
    client.reply = reply;
    const connection = new RedisConnection(client as unknown as RedisLike, {
      timeoutMs: 100,
      runtime: systemRuntime(),
    });
    return { client, connection, opened: connection.opened() };
  };

  it.each(['LOADING Redis is loading the dataset in memory', 'BUSY Redis is busy running a script'])(
    'says so with the reason of the server, and is used as soon as it does: %s',
    async (reply) => {
      const { client, connection, opened } = refusing(reply);
      await expect(opened).rejects.toMatchObject({
        message: `Redis was not ready within 100 ms: ${reply}`,
        outcome: 'not-executed',
        passing: true,
      });
      client.reply = undefined;
      await expect(connection.opened()).resolves.toMatchObject({ alive: true });
      connection.close();
    },
  );

  it('names the reason why the server rejects it: NOAUTH', async () => {
    const { connection, opened } = refusing('NOAUTH Authentication required.');
    await expect(opened).rejects.toMatchObject({
      message: 'Redis was not ready within 100 ms: NOAUTH Authentication required.',
      passing: false,
    });
    connection.close();
  });

  it('names the reason why the server rejects it, also with a client that is ready although it has given up', async () => {
    const client = new RefusingClient();
    client.call = () =>
      Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    const connection = new RedisConnection(client as unknown as RedisLike, {
      timeoutMs: 100,
      runtime: systemRuntime(),
    });
    const opened = connection.opened();
    client.emit('connect');
    client.emit('error', replyError('WRONGPASS invalid username-password pair'));
    client.emit('ready');
    await expect(opened).rejects.toMatchObject({
      message: 'Redis was not ready within 100 ms: WRONGPASS invalid username-password pair',
      passing: false,
    });
    connection.close();
  });

  it('lets a client try again that is ready although its connection has ended', () => {
    const client = Object.assign(new TakingClient(), { reconnectTimeout: {} });
    const connection = new RedisConnection(client as unknown as RedisLike, {
      timeoutMs: 100,
      runtime: systemRuntime(),
    });
    client.stream.destroy();
    client.emit('ready');
    expect(client.status).toBe('reconnecting');
    connection.close();
  });

  it.each(["ERR unknown command 'PING'", "NOPERM this user has no permissions to run the 'ping' command"])(
    'is used all the same when only PING is refused: %s',
    async (reply) => {
      const { connection, opened } = refusing(reply);
      await expect(opened).resolves.toMatchObject({ alive: true });
      connection.close();
    },
  );
});
