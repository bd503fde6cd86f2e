import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { Frames } from '../../../lib/stores/zookeeper/frames.js';
import { JuteReader, JuteWriter, ProtocolError } from '../../../lib/stores/zookeeper/jute.js';
import {
  create,
  EPHEMERAL_SEQUENTIAL,
  getChildren,
  getData,
  remove,
  sync,
  type ZkRequest,
} from '../../../lib/stores/zookeeper/requests.js';
import { ZkConnection } from '../../../lib/stores/zookeeper/zk-connection.js';
import { ZkFailure } from '../../../lib/stores/zookeeper/zk-failure.js';
import { runs } from '../../support/property/runs.js';

const MIB = 1_024 * 1_024;
const REQUESTS: readonly ZkRequest<unknown>[] = [
  create('/a', EPHEMERAL_SEQUENTIAL, []),
  remove('/a'),
  getData('/a'),
  getChildren('/a'),
  sync('/a'),
];

/** Bytes as a hostile server may send them: any, or lengths that cannot be true. */
const hostileBytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc
    .tuple(fc.constantFrom(-2, -1, 0, 1, 2 ** 24, 2 ** 31 - 1, -(2 ** 31)), fc.uint8Array({ maxLength: 60 }))
    .map(([length, rest]) => Buffer.concat([new JuteWriter().int(length).frame().subarray(4), rest])),
);

/** A socket whose other end is the test. */
class FakeSocket extends EventEmitter {
  readonly sent: Buffer[] = [];
  isDestroyed = false;

  setNoDelay(): this {
    return this;
  }

  write(chunk: Buffer): boolean {
    this.sent.push(chunk);
    return true;
  }

  destroy(): this {
    this.isDestroyed = true;
    this.emit('close');
    return this;
  }
}

/** Reply to the hello of a client: a session of 30 s. */
const GREETING = new JuteWriter().int(0).int(30_000).long(1n).bytes(Buffer.alloc(16)).frame();

const connectionTo = async (socket: FakeSocket): Promise<ZkConnection> => {
  const of = {
    runtime: systemRuntime(),
    heard: () => undefined,
    changed: () => undefined,
    expired: () => undefined,
    ended: () => undefined,
  };
  const hello = { id: 0n, password: Buffer.alloc(16), timeoutMs: 30_000, lastSeen: 0n };
  const limits = { timeoutMs: 30_000, signal: new AbortController().signal };
  const opening = ZkConnection.open(socket as unknown as Socket, hello, of, limits);
  socket.emit('data', GREETING);
  return (await opening).connection;
};

/** Calls a function that may only throw a {@link ProtocolError}. */
const mayRefuse = (read: () => unknown): void => {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(ProtocolError);
  }
};

describe('the codec of ZooKeeper', () => {
  it('reads what it writes, however the bytes are cut', () => {
    const value = fc.record({
      int: fc.integer(),
      long: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      bool: fc.boolean(),
      text: fc.string({ unit: 'grapheme' }),
      bytes: fc.uint8Array(),
      list: fc.array(fc.string()),
    });
    const property = fc.property(
      fc.array(value, { maxLength: 5 }),
      fc.integer({ min: 1, max: 50 }),
      (values, step) => {
        const frames = values.map(({ int, long, bool, text, bytes, list }) => {
          const to = new JuteWriter().int(int).long(long).bool(bool).text(text).bytes(Buffer.from(bytes));
          return to.list(list, (one) => to.text(one)).frame();
        });
        const stream = Buffer.concat(frames);
        const read: Buffer[] = [];
        const reader = new Frames();
        for (let at = 0; at < stream.length; at += step)
          read.push(...reader.add(stream.subarray(at, at + step)));
        const found = read.map((frame) => {
          const from = new JuteReader(frame);
          const [int, long, bool, text] = [from.int(), from.long(), from.bool(), from.text()];
          const bytes = new Uint8Array(from.bytes());
          return { int, long, bool, text, bytes, list: from.list(() => from.text()), isAtEnd: from.isAtEnd };
        });
        expect(found).toEqual(values.map((one) => ({ ...one, isAtEnd: true })));
      },
    );
    fc.assert(property, runs(300));
  });

  it('refuses hostile bytes, and reads past no end', () => {
    const property = fc.property(hostileBytes, (bytes) => {
      for (const request of REQUESTS) mayRefuse(() => request.read(new JuteReader(Buffer.from(bytes))));
      mayRefuse(() => new Frames().add(Buffer.from(bytes)));
    });
    fc.assert(property, runs(2_000));
  });

  it('takes no memory for lengths that a server only claims', () => {
    const before = process.memoryUsage().arrayBuffers;
    const claimed = new JuteWriter()
      .int(2 ** 31 - 1)
      .frame()
      .subarray(4);
    expect(() => new JuteReader(claimed).list(() => 0)).toThrow(ProtocolError);
    expect(() => new JuteReader(claimed).bytes()).toThrow(ProtocolError);
    expect(() => new Frames().add(claimed)).toThrow(ProtocolError);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(MIB);
  });
});

const ANY_TIME = { until: Infinity, replyMs: Infinity };

describe('a connection to a hostile server', () => {
  it('settles each request, with a reply or a failure, and ends at the first bytes that make no sense', async () => {
    const property = fc.asyncProperty(
      fc.array(hostileBytes, { minLength: 1, maxLength: 5 }),
      async (chunks) => {
        const socket = new FakeSocket();
        const connection = await connectionTo(socket);
        const pending = REQUESTS.map((request) => connection.send(request, ANY_TIME));
        for (const chunk of chunks) socket.emit('data', Buffer.from(chunk));
        // A server may also close in the middle of a frame.
        socket.destroy();
        for (const end of await Promise.allSettled(pending)) {
          if (end.status === 'rejected') expect(end.reason).toBeInstanceOf(ZkFailure);
        }
        expect(connection.isOver).toBe(true);
        await expect(connection.send(REQUESTS[0]!, ANY_TIME)).rejects.toMatchObject({
          outcome: 'not-executed',
        });
      },
    );
    await fc.assert(property, runs(1_000));
  });

  it.each([
    ['a reply to a request that was not sent', 7, Buffer.alloc(0)],
    ['a reply that is cut off', 1, Buffer.from([0, 0])],
  ])('ends with %s: the outcome is unknown', async (_, xid, rest) => {
    const socket = new FakeSocket();
    const connection = await connectionTo(socket);
    const reply = connection.send(getChildren('/a'), ANY_TIME);
    const body = new JuteWriter().int(xid).long(1n).int(0).frame().subarray(4);
    const length = new JuteWriter()
      .int(body.length + rest.length)
      .frame()
      .subarray(4);
    socket.emit('data', Buffer.concat([length, body, rest]));
    await expect(reply).rejects.toMatchObject({ outcome: 'unknown', passing: true });
    expect([connection.isOver, socket.isDestroyed]).toEqual([true, true]);
  });

  it('ends when a request has no reply in time: the outcome is unknown', async () => {
    const socket = new FakeSocket();
    const connection = await connectionTo(socket);
    const [late, long] = [
      connection.send(getChildren('/a'), { ...ANY_TIME, replyMs: 20 }),
      connection.send(getChildren('/b'), { ...ANY_TIME, replyMs: 60_000 }),
    ];
    await expect(late).rejects.toMatchObject({ outcome: 'unknown' });
    await expect(long).rejects.toMatchObject({ outcome: 'unknown' });
    expect(socket.isDestroyed).toBe(true);
  });
});
