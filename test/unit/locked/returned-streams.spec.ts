import 'reflect-metadata';
import { once } from 'node:events';
import { Duplex, PassThrough, Readable, Writable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import { lastValueFrom, of, type Observable } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LockConfigurationError, Locked, type LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

const UNREAD_MS = 30_000;
const broken = new Error('broken half-way');

class Files {
  source: Readable = new PassThrough();

  @Locked('file')
  async stream(): Promise<Readable> {
    return this.source;
  }

  @Locked('once', { oncePerMs: 60_000 })
  async once(): Promise<Readable> {
    return this.source;
  }

  @Locked('file')
  async file(): Promise<StreamableFile> {
    return new StreamableFile(this.source);
  }

  @Locked('file')
  async feed(): Promise<Observable<number>> {
    return of(1);
  }

  @Locked('file')
  async pages(): Promise<AsyncGenerator<number>> {
    return (async function* () {
      yield 1;
    })();
  }
}

const start = (source: Readable) => {
  const { instance, locks } = lockedInstance(Files);
  instance.source = source;
  return { instance, locks };
};

const idle = (locks: LockService) => until(() => isIdle(locks), { what: 'nothing is held' });

const read = async (stream: Readable): Promise<string> => {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
};

afterEach(() => {
  vi.useRealTimers();
});

describe('a stream that a locked method returns', () => {
  it('holds the lock until it has been read', async () => {
    const { instance, locks } = start(Readable.from(['a', 'b']));
    const stream = await instance.stream();
    expect(await locks.isLocked('file')).toBe(true);
    await expect(read(stream)).resolves.toBe('ab');
    await idle(locks);
  });

  it('is the very stream that the method returned', async () => {
    const source = Readable.from(['a']);
    const { instance, locks } = start(source);
    expect(await instance.stream()).toBe(source);
    source.destroy();
    await idle(locks);
  });

  it('holds the lock until it has been read inside a StreamableFile', async () => {
    const { instance, locks } = start(Readable.from(['a', 'b']));
    const file = await instance.file();
    expect(await locks.isLocked('file')).toBe(true);
    await expect(read(file.getStream())).resolves.toBe('ab');
    await idle(locks);
  });

  it('gives the lock back when it is destroyed, and when it fails', async () => {
    const { instance, locks } = start(new PassThrough());
    (await instance.stream()).destroy();
    await idle(locks);
    instance.source = new PassThrough();
    const failing = await instance.stream();
    failing.on('error', () => undefined);
    failing.destroy(broken);
    await idle(locks);
  });

  it.each([{ autoDestroy: false }, { emitClose: false }, { autoDestroy: false, emitClose: false }])(
    'holds the lock to its end, and no longer, also when it emits no close: %o',
    async (options) => {
      const { instance, locks } = start(new PassThrough(options));
      const stream = await instance.stream();
      stream.push('a');
      expect(await locks.isLocked('file')).toBe(true);
      stream.push(null);
      await expect(once(stream.resume(), 'end')).resolves.toEqual([]);
      await idle(locks);

      instance.source = new PassThrough(options);
      (await instance.stream()).destroy();
      await idle(locks);

      instance.source = new PassThrough(options);
      const failing = await instance.stream();
      const failed = once(failing, 'error');
      failing.destroy(broken);
      await expect(failed).resolves.toEqual([broken]);
      await idle(locks);

      await instance.stream();
      await idle(locks);
    },
  );

  it('holds the lock until its reading side has ended, whatever is still written to it', async () => {
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    const { instance, locks } = start(socket);
    const stream = await instance.stream();
    expect(await locks.isLocked('file')).toBe(true);
    stream.push(null);
    stream.resume();
    await idle(locks);
    expect(socket.writable).toBe(true);
    socket.destroy();
  });

  it('holds the lock until all has been written, when it is only for writing', async () => {
    const target = new Writable({ autoDestroy: false, write: (_chunk, _encoding, done) => done() });
    const { instance, locks } = start(target as never);
    await instance.stream();
    expect(await locks.isLocked('file')).toBe(true);
    target.end('a');
    await idle(locks);
  });

  it('does not hide an error without a listener', async () => {
    const { instance, locks } = start(new PassThrough({ autoDestroy: false }));
    const stream = await instance.stream();
    expect(() => stream.emit('error', broken)).toThrow(broken);
    await idle(locks);
  });

  it('that is over already holds nothing', async () => {
    const source = Readable.from(['a']);
    source.destroy();
    const { instance, locks } = start(source);
    await instance.stream();
    await idle(locks);
  });
});

describe('an unread result', () => {
  it.each(['stream', 'file', 'feed', 'pages'] as const)(
    'gives its lock back after 30 s: %s',
    async (name) => {
      vi.useFakeTimers();
      const { instance, locks } = start(new PassThrough());
      await instance[name]();
      await vi.advanceTimersByTimeAsync(UNREAD_MS - 1);
      expect(await locks.isLocked('file')).toBe(true);
      await vi.advanceTimersByTimeAsync(2);
      expect(await locks.isLocked('file')).toBe(false);
      expect(isIdle(locks)).toBe(true);
    },
  );

  it('cannot be read later, without the lock: an Observable', async () => {
    vi.useFakeTimers();
    const { instance } = start(new PassThrough());
    const feed = await instance.feed();
    await vi.advanceTimersByTimeAsync(UNREAD_MS + 1);
    await expect(lastValueFrom(feed)).rejects.toThrow(/Files\.feed: .*not within 30000 ms/);
  });

  it('cannot be read later, without the lock: a generator', async () => {
    vi.useFakeTimers();
    const { instance } = start(new PassThrough());
    const pages = await instance.pages();
    await vi.advanceTimersByTimeAsync(UNREAD_MS + 1);
    await expect(pages.next()).rejects.toThrow(LockConfigurationError);
  });

  it('cannot be read later, without the lock: a stream', async () => {
    vi.useFakeTimers();
    const { instance } = start(Readable.from(['a']));
    const stream = await instance.stream();
    await vi.advanceTimersByTimeAsync(UNREAD_MS + 1);
    expect(stream.destroyed).toBe(true);
    expect(stream.errored).toBeInstanceOf(LockConfigurationError);
  });

  it('is not disturbed once its reader has begun, however slowly it reads', async () => {
    vi.useFakeTimers();
    const source = new PassThrough();
    const { instance, locks } = start(source);
    const stream = await instance.stream();
    stream.on('data', () => undefined);
    source.push('a');
    await vi.advanceTimersByTimeAsync(3 * UNREAD_MS);
    expect(stream.destroyed).toBe(false);
    expect(await locks.isLocked('file')).toBe(true);
    source.push(null);
    source.destroy();
    await vi.advanceTimersByTimeAsync(1);
    expect(isIdle(locks)).toBe(true);
  });
});

describe('a stream from a method with oncePerMs', () => {
  it('is refused, and uses up no window', async () => {
    const { instance, locks } = start(Readable.from(['text']));
    await expect(instance.once()).rejects.toThrow(
      'Files.once: a method with oncePerMs must return a Promise',
    );
    expect(await locks.inspect('once')).toBeNull();
  });
});
