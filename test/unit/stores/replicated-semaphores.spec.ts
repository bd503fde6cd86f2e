import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';
import { RedisConnection } from '../../../lib/stores/redis/connection/redis-connection.js';
import { replyError } from '../../../lib/stores/redis/connection/redis-failure.js';
import type { RedisTopology } from '../../../lib/stores/redis/connection/redis-topology.js';
import { RedisLink } from '../../../lib/stores/redis/kinds/redis-link.js';
import { RedisSemaphores } from '../../../lib/stores/redis/kinds/semaphore/redis-semaphore.js';
import { RedisKeys } from '../../../lib/stores/redis/redis-keys.js';
import { ReplicatedSemaphores } from '../../../lib/stores/redis/replicas/replicated-semaphores.js';
import { Replicas } from '../../../lib/stores/redis/replicas/replicas.js';

/** A client that is connected to the first server, and to the next one after each failover. */
class FailingOver extends EventEmitter {
  readonly status = 'ready';
  readonly options = {};
  readonly stream = new Writable();
  server = 1;
  /** What a server was asked, of WAIT and of changes of the semaphore. */
  readonly requested: string[] = [];
  wait = (): Promise<number> => Promise.resolve(0);
  add = (): Promise<number> => Promise.resolve(1);

  call(command: string, ...args: readonly unknown[]): Promise<unknown> {
    const note = (what: string): void => void this.requested.push(`${this.server}: ${what}`);
    if (command === 'wait') {
      note('wait');
      return this.wait();
    }
    if (!command.startsWith('eval')) return Promise.resolve('OK');
    const [, , , permits, channel] = args;
    note(`${command} ${channel === undefined ? '-' : '+'}${String(permits)}`);
    return channel === undefined ? Promise.resolve(1) : this.add();
  }

  failOver(): void {
    this.server += 1;
    this.emit('close');
    this.emit('ready');
  }

  disconnect(): void {
    this.stream.destroy();
  }
}

const lost = (): Promise<never> => Promise.reject(new Error('Connection is closed.'));
const unwritable = (): Promise<never> =>
  Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));

describe('permits that too few replicas acknowledged', () => {
  const opened: RedisConnection[] = [];
  afterEach(() => {
    for (const connection of opened.splice(0)) connection.close();
  });

  const semaphores = async () => {
    const client = new FailingOver();
    const connection = new RedisConnection(client as unknown as RedisLike, {
      timeoutMs: 1_000,
      runtime: systemRuntime(),
    });
    opened.push(connection);
    await connection.opened();
    const topology: Partial<RedisTopology> = {
      commands: connection,
      publish: 'PUBLISH',
      connectionTo: () => connection,
      connectionOf: () => connection,
    };
    const link = new RedisLink(topology as RedisTopology, new RedisKeys(''), systemRuntime());
    const replicas = new Replicas(link, { min: 1, timeoutMs: 100 });
    const store = new ReplicatedSemaphores(new RedisSemaphores(link), replicas);
    /** The failure of a take of two permits, once there is a connection again. */
    const failure = async (): Promise<StoreFailure> => {
      const outcome = await store.take('mail', 2).catch((error: unknown) => error as StoreFailure);
      if (typeof outcome === 'boolean') expect.unreachable();
      await connection.opened();
      return outcome;
    };
    return { client, failure };
  };

  it('are given back on the connection that took them, and the failure says so', async () => {
    const { client, failure } = await semaphores();
    expect(await failure()).toMatchObject({
      message: '1 replica has to acknowledge it, but 0 did within 100 ms; what was taken was given back',
      outcome: 'not-executed',
      passing: true,
    });
    expect(client.requested).toEqual(['1: evalsha -2', '1: wait', '1: evalsha +2']);
  });

  it('are given back there also where the server does not know the script', async () => {
    const { client, failure } = await semaphores();
    client.add = () => {
      client.add = () => Promise.resolve(1);
      return Promise.reject(replyError('NOSCRIPT No matching script.'));
    };
    expect(await failure()).toMatchObject({ outcome: 'not-executed' });
    expect(client.requested.slice(2)).toEqual(['1: evalsha +2', '1: eval +2']);
  });

  it('are not given back to a server that took over before the replicas replied', async () => {
    const { client, failure } = await semaphores();
    client.wait = () => {
      client.failOver();
      return lost();
    };
    expect(await failure()).toMatchObject({ outcome: 'unknown' });
    expect(client.requested).toEqual(['1: evalsha -2', '1: wait']);
  });

  it.each([
    ['the connection that is found to have ended', unwritable],
    ['the connection that is lost before the reply', lost],
    ['a server that has lost the script', () => Promise.reject(replyError('NOSCRIPT No matching script.'))],
  ])('are not given back to a server that took over after %s', async (_, reply) => {
    const { client, failure } = await semaphores();
    client.add = () => {
      client.failOver();
      return reply();
    };
    const failed = await failure();
    expect(failed.outcome).toBe('unknown');
    expect(failed.message).toMatch(/but 0 did within 100 ms, and giving back what was taken failed: the/);
    expect(client.requested).toEqual(['1: evalsha -2', '1: wait', '1: evalsha +2']);
  });

  it('are not acknowledged by the replicas of a server that took over', async () => {
    const { client, failure } = await semaphores();
    client.wait = () => {
      client.failOver();
      client.wait = () => Promise.resolve(1);
      return unwritable();
    };
    expect(await failure()).toMatchObject({ outcome: 'unknown' });
    expect(client.requested).toEqual(['1: evalsha -2', '1: wait']);
  });
});
