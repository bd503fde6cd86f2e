import { describe, expect, it } from 'vitest';
import { deferred, until, within } from './async.js';
import type { FromEcho, ToEcho } from './fixtures/echo-worker.js';
import { TestWorker, type WorkerOptions } from './worker.js';

const startEcho = (options?: WorkerOptions) =>
  TestWorker.start<ToEcho, FromEcho>(new URL('./fixtures/echo-worker.ts', import.meta.url), options);

describe('TestWorker', () => {
  it('runs a TypeScript module with arguments and environment, and exchanges structured messages', async () => {
    await using worker = startEcho({ args: ['one'], env: { MARK: 'x' } });
    expect(await worker.next('ready')).toEqual({ type: 'ready', args: ['one'], mark: 'x' });
    const value = { infinite: Infinity, missing: undefined, map: new Map([['a', 1n]]) };
    worker.send({ type: 'echo', value });
    expect(await worker.next('echoed')).toEqual({ type: 'echoed', value });
  });

  it('compiles decorators with their metadata', async () => {
    await using worker = startEcho();
    worker.send({ type: 'metadata' });
    expect((await worker.next('metadata')).parameters).toEqual(['Dependency']);
  });

  it('ends by itself when the channel closes and nothing keeps it', async () => {
    await using worker = startEcho();
    await worker.next('ready');
    expect(await worker.finish()).toEqual({ code: 0, signal: null });
  });

  it('says what the worker printed, with lines of the source, when it fails', async () => {
    await using worker = startEcho();
    worker.send({ type: 'fail' });
    await expect(worker.next('echoed')).rejects.toThrow(/failed on purpose[^]*echo-worker\.ts:\d+/);
  });

  it('reports the end by a signal', async () => {
    await using worker = startEcho();
    await worker.next('ready');
    await worker.kill('SIGKILL');
    expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(worker.isRunning).toBe(false);
  });

  it('hears nothing between SIGSTOP and SIGCONT', async () => {
    await using worker = startEcho();
    await worker.next('ready');
    await worker.kill('SIGSTOP');
    worker.send({ type: 'echo', value: 1 });
    await expect(worker.next('echoed', { timeoutMs: 100 })).rejects.toThrow('it is running');
    await worker.kill('SIGCONT');
    expect((await worker.next('echoed')).value).toBe(1);
  });
});

describe('waiting', () => {
  it('until() returns what the condition returned, and gives the last error as the cause of a time-out', async () => {
    let looks = 0;
    expect(await until(() => (looks += 1) === 3 && 'third')).toBe('third');
    const broken = new Error('not yet');
    const wait = until(() => Promise.reject(broken), { timeoutMs: 20, what: 'a wonder' });
    await expect(wait).rejects.toMatchObject({
      message: 'not within 20 ms: a wonder (at last: not yet)',
      cause: broken,
    });
  });

  it('within() rejects when the time is over, and leaves a promise in time alone', async () => {
    const never = deferred();
    await expect(within(10, never.promise, 'the answer')).rejects.toThrow(
      'the answer did not settle within 10 ms',
    );
    expect(await within(1_000, Promise.resolve(1))).toBe(1);
  });

  it('collectUnhandledRejections() sees a rejection that nobody handles', async () => {
    await using worker = startEcho();
    worker.send({ type: 'forget a rejection' });
    const { reasons } = await worker.next('rejections');
    expect(reasons).toEqual([expect.objectContaining({ message: 'forgotten' })]);
  });
});
