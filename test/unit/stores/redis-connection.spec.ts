import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';
import { RedisConnection } from '../../../lib/stores/redis/connection/redis-connection.js';
import { Script } from '../../../lib/stores/redis/connection/script.js';

/** A client whose server takes everything; `packets` says how many commands were in each. */
class TakingClient extends EventEmitter {
  readonly status = 'ready';
  readonly options = {};
  readonly packets: number[] = [];
  readonly stream = new Writable({
    write: (_chunk, _encoding, done) => {
      this.packets.push(1);
      done();
    },
    writev: (chunks, done) => {
      this.packets.push(chunks.length);
      done();
    },
  });

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
  const connection = new RedisConnection(client as unknown as RedisLike, { timeoutMs: 1_000, batchParts });
  await connection.opened();
  client.packets.length = 0;
  return { client, connection };
};

describe('a connection where no script can be run for several keys', () => {
  it('sends what is asked for in one tick in one packet, and what is alone at once', async () => {
    const { client, connection } = await connected([]);
    const ask = (): Promise<unknown> => connection.send({ command: 'get', args: ['a'], read: String });
    const first = ask();
    expect(client.packets).toEqual([1]);
    await Promise.all([first, ...Array.from({ length: 9 }, ask)]);
    await tick();
    expect(client.packets).toEqual([1, 9]);
    await Promise.all([ask(), ask(), ask()]);
    await tick();
    expect(client.packets).toEqual([1, 9, 1, 2]);
    connection.close();
  });

  it('leaves that to a script where there is one', async () => {
    const part = { letter: 'g', script: new Script('return 1'), keys: 1, args: 0 };
    const { client, connection } = await connected([part]);
    const run = (): Promise<unknown> => connection.runShared({ part, keys: ['a'], args: [] }, String);
    const asked = Promise.allSettled([run(), run(), run()]);
    await tick();
    expect(client.packets).toEqual([1, 1]);
    await asked;
    connection.close();
  });
});
