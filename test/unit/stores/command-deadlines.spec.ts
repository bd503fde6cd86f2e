import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemRuntime, type Runtime } from '../../../lib/core/util/runtime.js';
import { CommandDeadlines } from '../../../lib/stores/load/command-deadlines.js';
import { until } from '../../support/async.js';
import { listenOnFreePort } from '../../support/loopback.js';

/** Keeps the event loop busy. */
const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Replies that are there already come first; with the timers of these tests, an immediate takes this long. */
const IMMEDIATE_MS = 1;

/** Its turns are those of the fake timers, too, so that a test can look before one and after it. */
const steppedRuntime = (): Runtime => ({ ...systemRuntime(), soon: (action) => void setImmediate(action) });

describe('a command', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('that is not answered is overdue after its time, not before, and once', () => {
    const deadlines = new CommandDeadlines(60, steppedRuntime());
    const overdue: string[] = [];
    deadlines.add(() => overdue.push('the silent one'));
    vi.advanceTimersByTime(60);
    expect(overdue).toEqual([]);
    vi.advanceTimersByTime(IMMEDIATE_MS);
    expect(overdue).toEqual(['the silent one']);
    deadlines.add(() => overdue.push('the answered one')).done = true;
    vi.advanceTimersByTime(200);
    expect(overdue).toEqual(['the silent one']);
  });

  it('each has its own time, also when it was sent while others were under way', () => {
    const deadlines = new CommandDeadlines(50, steppedRuntime());
    const times: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const sentAt = performance.now();
      deadlines.add(() => times.push(performance.now() - sentAt));
      vi.advanceTimersByTime(10);
    }
    vi.advanceTimersByTime(50);
    expect(times).toEqual(Array.from({ length: 5 }, () => 50 + IMMEDIATE_MS));
  });

  it('that was answered is not overdue, whatever became of the others', () => {
    const deadlines = new CommandDeadlines(40, steppedRuntime());
    const overdue: number[] = [];
    const commands = Array.from({ length: 1_000 }, (_, i) => deadlines.add(() => overdue.push(i)));
    commands.forEach((command, i) => (command.done = i % 2 === 0));
    vi.advanceTimersByTime(80);
    expect(overdue).toHaveLength(500);
    expect(overdue.every((i) => i % 2 === 1)).toBe(true);
  });

  it('that ends another one when it is overdue has ended it for good', () => {
    const deadlines = new CommandDeadlines(30, steppedRuntime());
    const overdue: string[] = [];
    deadlines.add(() => {
      overdue.push('first');
      second.done = true;
    });
    const second = deadlines.add(() => overdue.push('second'));
    deadlines.add(() => overdue.push('third'));
    vi.advanceTimersByTime(60);
    expect(overdue).toEqual(['first', 'third']);
  });
});

describe('a blocked event loop', () => {
  const echo = async (): Promise<{ send(): Promise<unknown>; close(): Promise<void> }> => {
    const server = createServer((socket) => socket.pipe(socket));
    const port = await listenOnFreePort(server);
    const client = connect(port, '127.0.0.1');
    await once(client, 'connect');
    return {
      send: () => {
        const reply = once(client, 'data');
        client.write('?');
        return reply;
      },
      close: async () => {
        client.destroy();
        server.close();
        await once(server, 'close');
      },
    };
  };

  it('makes no command overdue whose answer is there when the loop goes on', async () => {
    const server = await echo();
    const deadlines = new CommandDeadlines(100, steppedRuntime());
    let overdue = false;
    const command = deadlines.add(() => (overdue = true));
    const replied = server.send().then(() => (command.done = true));
    // The question goes out, and the echo, which lives in this process too, comes back.
    await turn();
    await turn();
    block(300);
    await replied;
    // What falls due later does so after whatever was due before it.
    await new Promise<void>((resolve) => void deadlines.add(resolve));
    expect(overdue).toBe(false);
    await server.close();
  });

  it('makes none overdue that could only be sent when the loop went on', async () => {
    const server = await echo();
    const deadlines = new CommandDeadlines(100, steppedRuntime());
    let overdue = false;
    let replied = false;
    const command = deadlines.add(() => (overdue = true));
    // What ioredis and the batch of writes do: the bytes leave at the end of the tick.
    process.nextTick(() => {
      void server.send().then(() => {
        command.done = true;
        replied = true;
      });
    });
    block(300);
    await until(() => replied || overdue);
    expect([replied, overdue]).toEqual([true, false]);
    await server.close();
  });

  it('spares each command by itself: one after the other, in a loop that is blocked again and again', async () => {
    const server = await echo();
    const deadlines = new CommandDeadlines(100, steppedRuntime());
    let overdue = 0;
    for (let i = 0; i < 3; i += 1) {
      const command = deadlines.add(() => (overdue += 1));
      const replied = new Promise<void>((resolve) => {
        process.nextTick(() => {
          void server.send().then(() => {
            command.done = true;
            resolve();
          });
        });
      });
      block(170);
      await replied;
    }
    expect(overdue).toBe(0);
    await server.close();
  });

  it('does not postpone without end a command that is really unanswered', async () => {
    const deadlines = new CommandDeadlines(100, steppedRuntime());
    let overdue = false;
    deadlines.add(() => (overdue = true));
    const sentAt = performance.now();
    while (!overdue && performance.now() - sentAt < 5_000) {
      block(120);
      await turn();
    }
    expect(overdue).toBe(true);
  });
});
