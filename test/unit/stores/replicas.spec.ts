import { describe, expect, it } from 'vitest';
import { RedisFailure } from '../../../lib/stores/redis/connection/redis-failure.js';
import type { RedisLink } from '../../../lib/stores/redis/kinds/redis-link.js';
import { Replicas } from '../../../lib/stores/redis/replicas/replicas.js';
import { deferred } from '../../support/async.js';

/** A connection on which the test answers. */
const connectionWith = (replyWith: (reply: (value: unknown) => number) => Promise<number>) => {
  const connection = {
    current: { alive: true, id: '1', address: undefined } as object | undefined,
    sent: 0,
    sendOnlyOn: (_: unknown, { read }: { read: (value: unknown) => number }) => {
      connection.sent += 1;
      return replyWith(read);
    },
  };
  return connection;
};

const waitingOn = (connection: object): Replicas => {
  const link = { topology: { connectionTo: () => connection }, keys: { name: (key: string) => key } };
  return new Replicas(link as unknown as RedisLink, { min: 1, timeoutMs: 100 });
};

const failureOf = async (outcome: Promise<unknown>): Promise<RedisFailure> => {
  const failure = await outcome.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RedisFailure);
  return failure as RedisFailure;
};

describe('what replicas have', () => {
  it('is unknown when the connection is gone, or is another one when they are asked', async () => {
    const connection = connectionWith(() => Promise.resolve(1));
    const replicas = waitingOn(connection);
    const requested = replicas.confirming('a key')();
    connection.current = { alive: true };
    expect(await failureOf(requested)).toMatchObject({ outcome: 'unknown' });
    connection.current = undefined;
    expect(await failureOf(replicas.confirming('a key')())).toMatchObject({ outcome: 'unknown' });
    expect(connection.sent).toBe(0);
  });

  it('is unknown when WAIT is refused, fails, or is answered with nonsense', async () => {
    const refused = new RedisFailure('Redis refused the command: NOPERM', 'not-executed', {});
    for (const reply of [
      () => Promise.reject(refused),
      (read: (value: unknown) => number) => Promise.resolve('OK').then(read),
      (read: (value: unknown) => number) => Promise.resolve(-1).then(read),
    ]) {
      const connection = connectionWith(reply);
      const failure = await failureOf(waitingOn(connection).confirming('a key')());
      expect(failure).toMatchObject({ outcome: 'unknown', session: connection.current });
      expect(failure.cause).toBeInstanceOf(Error);
    }
  });

  it('is asked for once for all who come while an answer is under way', async () => {
    const first = deferred<number>();
    const replies = [first.promise, Promise.resolve(1), Promise.resolve(0)];
    const connection = connectionWith(() => replies[connection.sent - 1]!);
    const replicas = waitingOn(connection);
    const early = [replicas.confirming('a key')(), replicas.confirming('a key')()];
    await new Promise((resolve) => setImmediate(resolve));
    const later = [
      replicas.confirming('a key')(),
      replicas.confirming('a key')(),
      replicas.confirming('a key')(),
    ];
    await new Promise((resolve) => setImmediate(resolve));
    expect(connection.sent).toBe(1);
    first.resolve(0);
    for (const one of early) expect((await failureOf(one)).message).toMatch(/but 0 did within 100 ms/);
    await Promise.all(later);
    expect(connection.sent).toBe(2);
  });
});
