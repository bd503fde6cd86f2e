import { describe, expect, it } from 'vitest';
import { SendWindow } from '../../../lib/stores/redis/connection/send-window.js';
import { runsOf, type RedisRequest } from '../../../lib/stores/redis/connection/script.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

type Urgency = NonNullable<RedisRequest<unknown>['urgency']>;

/** A window on a server that replies when the test says so. */
const setUp = () => {
  const runtime = new VirtualRuntime();
  interface Sent {
    readonly name: string;
    readonly runs: number;
    readonly at: number;
    readonly reply: (value: unknown) => void;
  }
  const sent: Sent[] = [];
  const window = new SendWindow({
    ...{ runtime, timeoutMs: 2_000, trouble: () => undefined, silentForMs: () => 0 },
    sendRuns: () => expect.unreachable('only requests are sent here'),
  });
  const ask = (
    name: string,
    urgency: Urgency = 'other',
    claim?: RedisRequest<unknown>['claim'],
    keys = [name],
  ) => {
    const request = { command: 'evalsha', args: [], read: String, keys, urgency, claim };
    const runs = runsOf(request);
    const send = (): Promise<unknown> => {
      window.sent(runs);
      return new Promise((reply) => sent.push({ name, runs, at: runtime.now(), reply }));
    };
    return window.isOpen ? send() : window.wait(request, send);
  };
  /** All that is under way has its reply. */
  const replyAll = (): void => {
    for (const { at, runs, reply } of sent.splice(0)) {
      window.replied(runs, at);
      reply('OK');
    }
  };
  return { runtime, window, sent, ask, replyAll };
};

/** Asks for more than any window takes. */
const askForMuch = ({ ask }: ReturnType<typeof setUp>): void => {
  for (let i = 0; i < 40_000; i++) ask(`k${i}`, 'other', { until: Infinity }).catch(() => undefined);
};

describe('the window of what is sent without a reply', () => {
  it('has 64 places at first, and widens up to 8,192 while replies come in time', () => {
    const test = setUp();
    askForMuch(test);
    expect(test.sent).toHaveLength(64);
    const sizes: number[] = [];
    for (let round = 0; round < 10; round++) {
      test.replyAll();
      sizes.push(test.sent.length);
    }
    expect(sizes[0]).toBeLessThanOrEqual(128);
    expect(Math.max(...sizes)).toBe(8_192);
  });

  it('counts a renewal of 100 locks as 100: thousands are not sent at once', () => {
    const test = setUp();
    const keys = Array.from({ length: 100 }, (_, i) => `k${i}`);
    for (let i = 0; i < 25; i++) void test.ask('renewal', 'renewal', undefined, keys);
    const sizes: number[] = [];
    for (; test.sent.length > 0; test.replyAll()) sizes.push(test.sent.length);
    expect(sizes).toEqual([1, 2, 4, 8, 10]);
  });

  /** Asks for much, and answers each round as late as `lateMs` says. Returns how much was sent in each. */
  const rounds = async (count: number, lateMs: (sent: number) => number): Promise<readonly number[]> => {
    const test = setUp();
    askForMuch(test);
    test.replyAll();
    const sizes: number[] = [];
    for (let round = 0; round < count; round++) {
      sizes.push(test.sent.length);
      await test.runtime.pass(lateMs(test.sent.length));
      test.replyAll();
    }
    return sizes;
  };

  it('narrows down to 16 while replies are late because of what was sent', async () => {
    const sizes = await rounds(10, (sent) => 30 * sent);
    expect(Math.min(...sizes)).toBe(16);
    expect(Math.max(...sizes.slice(3))).toBe(32);
  });

  it('widens again when the server is farther away than before', async () => {
    const sizes = await rounds(16, () => 300);
    expect(Math.min(...sizes)).toBe(16);
    expect(sizes.at(-1)).toBeGreaterThan(1_000);
  });

  it('sends a renewal that came last before acquires that wait', () => {
    const test = setUp();
    askForMuch(test);
    void test.ask('held', 'renewal');
    test.replyAll();
    expect(test.sent[0]!.name).toBe('held');
  });

  it('withdraws an unsent acquire when its owner releases', async () => {
    const test = setUp();
    for (let i = 0; i < 64; i++) void test.ask(`k${i}`);
    const acquire = test.ask('k', 'other', { owner: 'p:1' });
    void test.ask('k', 'release', { owner: 'p:1' });
    await expect(acquire).rejects.toMatchObject({ outcome: 'not-executed', claimOnly: true });
    test.replyAll();
    expect(test.sent.map(({ name }) => name)).toEqual(['k']);
  });

  it('sends each of two releases of one owner', async () => {
    const test = setUp();
    for (let i = 0; i < 64; i++) void test.ask(`k${i}`);
    const releases = ['first', 'second'].map(() => test.ask('k', 'release', { owner: 'p:1' }));
    const settled = Promise.allSettled(releases);
    test.replyAll();
    test.replyAll();
    test.replyAll();
    expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  });

  it('counts a grant from its sending', async () => {
    const test = setUp();
    for (let i = 0; i < 64; i++) void test.ask(`k${i}`);
    const grant = test.ask('k');
    await test.runtime.pass(700);
    test.replyAll();
    const sentAt = test.runtime.now();
    await test.runtime.pass(100);
    test.sent[0]!.reply({ status: 'granted' });
    await expect(grant).resolves.toEqual({ status: 'granted', since: sentAt });
  });

  it('gives a request that waits again, on the next connection, no new time', async () => {
    const test = setUp();
    askForMuch(test);
    const { runtime, window } = test;
    const request = { command: 'evalsha', args: [], read: String, keys: ['k'], urgency: 'other' } as const;
    const asked: (number | undefined)[] = [];
    const again = async (due: RedisRequest<string>): Promise<string> => {
      asked.push(due.claim?.until);
      await settled();
      askForMuch(test);
      return window.wait(due, again);
    };
    const until = runtime.now() + 1_000;
    const ended = window.wait({ ...request, claim: { until } }, again).catch((error: Error) => error);
    await runtime.pass(900);
    window.reset();
    await runtime.pass(100);
    expect([asked, await ended]).toEqual([[until], expect.objectContaining({ overloaded: true })]);
  });

  it('sends all that waits when the connection has ended: it waits for the next one', () => {
    const test = setUp();
    for (let i = 0; i < 200; i++) test.ask(`k${i}`).catch(() => undefined);
    test.window.reset();
    expect(test.sent).toHaveLength(200);
  });
});
