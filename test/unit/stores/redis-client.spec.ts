import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { dropWhereParserThrows, type RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';

/** A socket whose listeners throw, as the parser of ioredis 5 does for lengths that it cannot handle. */
class Socket extends EventEmitter {
  destroyedWith: Error | undefined;

  destroy(error?: Error): void {
    this.destroyedWith = error;
  }
}

describe('a client whose parser throws', () => {
  const socket = new Socket();
  const failure = new RangeError('Invalid array length');
  for (const event of ['data', 'drain']) {
    socket.on(event, () => {
      throw failure;
    });
  }
  dropWhereParserThrows({ stream: socket } as unknown as RedisLike);

  it('loses its connection with that error, and the process goes on', () => {
    expect(socket.emit('data', Buffer.from('*9999999999\r\n'))).toBe(true);
    expect(socket.destroyedWith).toBe(failure);
  });

  it('keeps errors of other listeners as they are', () => {
    expect(() => socket.emit('drain')).toThrow(failure);
  });
});
