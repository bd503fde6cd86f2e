import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Watch } from '../../../lib/core/seam/lock-store.js';
import type { RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';
import { RedisSubscriber } from '../../../lib/stores/redis/connection/redis-subscriber.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

/** A client whose server accepts every subscription; `sent` says how many channels each command named. */
class AcceptingClient extends EventEmitter {
  readonly status = 'ready';
  readonly options = {};
  readonly sent: [command: string, ...channels: string[]][] = [];

  subscribe(...channels: string[]): Promise<unknown> {
    return this.answer(['subscribe', ...channels]);
  }

  unsubscribe(...channels: string[]): Promise<unknown> {
    return this.answer(['unsubscribe', ...channels]);
  }

  /** SSUBSCRIBE and SUNSUBSCRIBE. */
  call(command: string, ...channels: string[]): Promise<unknown> {
    return this.answer([command, ...channels]);
  }

  disconnect(): void {
    this.emit('end');
  }

  private answer(command: [string, ...string[]]): Promise<unknown> {
    this.sent.push(command);
    return Promise.resolve(command.length - 1);
  }
}

/** How many turns a test lets the event loop take at most. */
const MAX_TURNS = 100;

class Stage {
  readonly client = new AcceptingClient();
  readonly woken: string[] = [];
  readonly subscriber: RedisSubscriber;
  private readonly turns: (() => void)[] = [];

  constructor(isSharded = false) {
    const runtime = new VirtualRuntime();
    runtime.soon = (action) => void this.turns.push(action);
    const client = this.client as unknown as RedisLike;
    this.subscriber = new RedisSubscriber(client, { timeoutMs: 1_000, runtime, isSharded });
  }

  watch(channel: string): Watch {
    return this.subscriber.watch(channel, {
      notified: () => void this.woken.push(channel),
      failed: (failure) => {
        throw failure;
      },
    });
  }

  /** Lets the event loop turn until nothing is left; returns how many waiters were woken in each turn. */
  async wokenByTurn(): Promise<readonly number[]> {
    const counts: number[] = [];
    for (let turn: (() => void) | undefined = () => undefined; turn; turn = this.turns.shift()) {
      const before = this.woken.length;
      turn();
      await settled();
      if (this.woken.length > before) counts.push(this.woken.length - before);
      if (counts.length > MAX_TURNS) throw new Error('The event loop turns without end.');
    }
    return counts;
  }

  /** Commands that were sent since the last call, each with its number of channels. */
  commands(): readonly (readonly [string, number])[] {
    return this.client.sent.splice(0).map(([command, ...channels]) => [command, channels.length] as const);
  }
}

const channels = (count: number): string[] => Array.from({ length: count }, (_, i) => `c${i}`);

describe('the subscriber of a process that begins to wait for many keys', () => {
  it('subscribes to the channels of one tick with few commands, and leaves them in the same way', async () => {
    const stage = new Stage();
    const watches = channels(1_200).map((channel) => stage.watch(channel));
    await stage.wokenByTurn();
    expect(stage.commands()).toEqual([
      ['subscribe', 500],
      ['subscribe', 500],
      ['subscribe', 200],
    ]);
    for (const watch of watches) watch.close();
    await settled();
    expect(stage.commands()).toEqual([
      ['unsubscribe', 500],
      ['unsubscribe', 500],
      ['unsubscribe', 200],
    ]);
    stage.subscriber.close();
  });

  it('wakes the waiters in portions, one in each turn of the event loop', async () => {
    const stage = new Stage();
    for (const channel of channels(1_200)) stage.watch(channel);
    expect(await stage.wokenByTurn()).toEqual([250, 250, 250, 250, 200]);
    expect(stage.woken).toEqual(channels(1_200));
    for (const channel of channels(600)) stage.client.emit('message', channel, '0');
    // The last portion had room for 50 more.
    expect([stage.woken.length, ...(await stage.wokenByTurn())]).toEqual([1_250, 250, 250, 50]);
    stage.subscriber.close();
  });

  it('names one channel in each command where the channels lie in slots', async () => {
    const stage = new Stage(true);
    for (const channel of channels(3)) stage.watch(channel);
    await settled();
    expect(stage.commands()).toEqual(Array.from({ length: 3 }, () => ['ssubscribe', 1]));
    stage.subscriber.close();
  });
});

describe('a channel', () => {
  it('that is left and watched again in one tick is subscribed to at the end', async () => {
    const stage = new Stage();
    const first = stage.watch('c');
    await stage.wokenByTurn();
    first.close();
    const second = stage.watch('c');
    await stage.wokenByTurn();
    expect(stage.client.sent).toEqual([
      ['subscribe', 'c'],
      ['unsubscribe', 'c'],
      ['subscribe', 'c'],
    ]);
    expect([second.live, stage.woken]).toEqual([true, ['c', 'c']]);
    stage.subscriber.close();
  });

  it('that is left and watched again as the connection comes back is subscribed to once', async () => {
    const stage = new Stage();
    const first = stage.watch('c');
    await stage.wokenByTurn();
    first.close();
    stage.watch('c');
    stage.client.emit('ready');
    await stage.wokenByTurn();
    expect(stage.client.sent).toEqual([
      ['subscribe', 'c'],
      ['subscribe', 'c'],
    ]);
    stage.subscriber.close();
  });

  it('that is watched and left in one tick costs no command', async () => {
    const stage = new Stage();
    stage.watch('c').close();
    await settled();
    expect(stage.client.sent).toEqual([]);
    stage.subscriber.close();
  });
});
