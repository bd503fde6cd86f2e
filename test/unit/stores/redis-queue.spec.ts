import { describe, expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { AcquireReply } from '../../../lib/core/seam/reply.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import type { ScriptRun } from '../../../lib/stores/redis/connection/script-batch.js';
import { RedisQueue } from '../../../lib/stores/redis/kinds/exclusive/redis-queue.js';
import type { RedisLink } from '../../../lib/stores/redis/kinds/redis-link.js';
import { RedisKeys } from '../../../lib/stores/redis/redis-keys.js';

const PROCESS = '00000000-0000-8000-8000-000000000000';

const claimOf = (number: number): ExclusiveClaim => ({
  kind: 'exclusive',
  finalKey: 'lock:order',
  owner: `${PROCESS}:${number}`,
  leaseMs: 30_000,
  tokens: 1,
  waits: true,
  entryTerms: { aliveMs: 5_000, provisionalLeaseMs: 10_000, tokens: 64 },
});

const grantOf = ({ owner, finalKey }: ExclusiveClaim): string =>
  `grant 1 ${owner} 700 64 10000 0\n${finalKey}`;

/** A wait queue whose replies and messages come when the test says so: a server never sends a message too early on demand. */
class Stage {
  readonly runs: ScriptRun[] = [];
  readonly released: unknown[] = [];
  /** Passes a message on to the process. */
  say!: (message: string) => void;
  readonly queue: RedisQueue;

  constructor() {
    const session = {};
    let loopback = '';
    const connection = {
      current: session,
      send: ({ args }: { args: readonly string[] }) => {
        loopback = args[1]!;
        return Promise.resolve(1);
      },
    };
    const channels = {
      isLive: () => true,
      watch: (
        _channel: string,
        { message, notified }: { message: (text: string) => void; notified: () => void },
      ) => {
        this.say = message;
        queueMicrotask(() => {
          notified();
          message(loopback);
        });
        return { live: true, close: () => undefined };
      },
    };
    const commands = {
      share: (run: ScriptRun) => this.runs.push(run),
      run: (_script: unknown, _keys: unknown, args: readonly unknown[]) => {
        this.released.push(args[0]);
        return Promise.resolve(-1);
      },
    };
    const topology = { hasSlots: false, publish: 'PUBLISH', connectionTo: () => connection };
    const link = {
      topology,
      channels,
      commands,
      keys: new RedisKeys(''),
      runtime: systemRuntime(),
      publish: 'PUBLISH',
    };
    this.queue = new RedisQueue(link as unknown as RedisLink, () => Promise.resolve());
  }

  /** Sends a request; returns its reply, and the function that delivers it. */
  request(claim: ExclusiveClaim): { reply: Promise<AcquireReply>; deliver: (reply: unknown) => void } {
    const reply = new Promise<AcquireReply>((resolve, reject) => this.queue.acquire(claim, resolve, reject));
    reply.catch(() => undefined);
    const run = this.runs.at(-1)!;
    return { reply, deliver: (text) => run.resolve(run.read(text)) };
  }

  /** A first waiter, with which the grant subscription opens. */
  async subscribed(): Promise<this> {
    const { reply, deliver } = this.request(claimOf(1));
    deliver('q 1 0 1000');
    await reply;
    await new Promise(setImmediate);
    return this;
  }
}

const outcomesOf = (reply: AcquireReply): (QueueEntryOutcome | 'missed')[] => {
  const outcomes: (QueueEntryOutcome | 'missed')[] = [];
  if (reply.status !== 'queued' || !('entry' in reply)) throw new Error(`the reply is ${reply.status}`);
  reply.entry.listen({
    notified: (outcome) => outcomes.push(outcome),
    missedNotification: () => outcomes.push('missed'),
  });
  return outcomes;
};

describe('a grant whose message arrives before the reply "queued"', () => {
  it('is known as soon as the reply is', async () => {
    const stage = await new Stage().subscribed();
    const claim = claimOf(2);
    const { reply, deliver } = stage.request(claim);
    stage.say(grantOf(claim));
    deliver('q 2 0 1000');
    const granted = { status: 'granted', validForMs: 10_000, token: 700, tokens: 64, waiting: 0 };
    expect(outcomesOf(await reply)).toEqual([granted]);
    expect(stage.released).toEqual([]);
  });

  it('is released when its request fails', async () => {
    const stage = await new Stage().subscribed();
    const claim = claimOf(2);
    const { reply } = stage.request(claim);
    stage.say(grantOf(claim));
    stage.runs.at(-1)!.reject(new Error('timed out'));
    await expect(reply).rejects.toThrow('timed out');
    expect(stage.released).toEqual([claim.owner]);
  });

  it('may have been missed when the subscription opened in the meantime', async () => {
    const stage = new Stage();
    const { reply, deliver } = stage.request(claimOf(2));
    await stage.subscribed();
    deliver('q 2 0 1000');
    expect(outcomesOf(await reply)).toEqual(['missed']);
  });
});
