import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { holder, KEY } from '../../faults/directed/tasks.js';
import { permitsKey, type Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

/** Who is not woken waits for the end of a long lease. */
const longHolder = holder('A', { waitMs: 0, leaseMs: 5_000 });

const waiter: Task = { style: 'withLock', keys: [KEY], waitMs: 1_500, steps: [] };

/** Who waits for a permit stands in no line: all it hears is that one is free. */
const ONE = permitsKey(1);
const permitHolder: Task = { ...longHolder, style: 'acquirePermit', keys: [ONE], permits: 1 };
const permitWaiter: Task = { ...waiter, style: 'withPermit', keys: [ONE], permits: 1 };

/** Mistakes in waiting and in being woken. */
export const WAITING_MISTAKES: readonly Mistake[] = [
  {
    name: 'no second try once the subscription is live',
    edits: [{ in: 'RedisSubscriber.subscribe', find: 'this.wakeUp(channel);', replace: '' }],
    simulation: { rules: ['promptness'] },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, permitHolder);
        await stage.one.notified('A has it');
        // The second connection opens with the first wait.
        await stage.perform(stage.two, { ...permitWaiter, waitMs: 50 });
        // Its SUBSCRIBE does not arrive before the lock is free.
        const subscriber = stage.connection(stage.two, 'subscriber');
        subscriber.blackhole(['toServer']);
        const requested = stage.requesting(stage.two, 'permit');
        stage.start(stage.two, permitWaiter);
        await requested;
        await sleep(60);
        stage.one.go('A ends');
        await sleep(60);
        subscriber.restore();
      },
    },
  },
  {
    name: 'messages counted only from the reply on',
    edits: [
      {
        in: 'Contention.win',
        find: 'await this.sleep(reply, wakeUpsBefore);',
        replace: 'await this.sleep(reply, queue.wakeUps);',
      },
    ],
    simulation: { rules: ['promptness'] },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, permitHolder);
        await stage.one.notified('A has it');
        const commands = stage.connection(stage.two, 'commands');
        const requestedOnce = stage.requesting(stage.two, 'permit');
        stage.start(stage.two, permitWaiter);
        await requestedOnce;
        // It asks again once it is subscribed. That answer is overtaken by the message of the release.
        await stage.requesting(stage.two, 'permit', () => commands.blackhole(['toClient']));
        await sleep(30);
        const message = stage.arriving(stage.two, 'subscriber', 'message');
        stage.one.go('A ends');
        await message;
        await sleep(30);
        commands.restore();
      },
    },
  },
  {
    name: 'no new try after the subscriber has connected again',
    edits: [
      {
        in: 'RedisSubscriber.resubscribe',
        find: 'this.subscribe(names);',
        replace:
          'void this.#client.subscribe(...names).then(() => this.channels.forEach((one) => (one.live = true)));',
      },
      {
        in: 'RedisSubscriber.disconnected',
        find: 'if (interrupted.length === 0) return;',
        replace: 'if (interrupted.length >= 0) return;',
      },
    ],
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, permitHolder);
        await stage.one.notified('A has it');
        stage.start(stage.two, permitWaiter);
        await stage.listenedTo(ONE);
        await sleep(100);
        stage.hampered(stage.two, 400);
        const { link } = stage.two;
        link.refuse();
        stage.connection(stage.two, 'subscriber').cut();
        stage.one.go('A ends');
        await sleep(60);
        await link.restore();
      },
    },
  },
  {
    name: 'a waiter dropped when its neighbour aborts',
    edits: [
      {
        in: 'LocalQueue.aborted',
        find: 'waiter.reject(',
        replace: 'for (const one of this.waiters.all) this.waiters.delete(one);\n    waiter.reject(',
      },
    ],
    simulation: { rules: ['promptness', 'waiting', 'leftovers'] },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, longHolder);
        await stage.one.notified('A has it');
        const aborted = stage.perform(stage.one, { ...waiter, abortAfterMs: 50 });
        stage.start(stage.one, waiter);
        await aborted;
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'a store that fails taken for a lock that is taken',
    edits: [
      {
        in: 'Contention.failed',
        find: "storeError(core.shown(wait.key), failure, 'acquiring', this.waitedMs())",
        replace: 'takenError(core.shown(wait.key), this.waitedMs(), wait.waitMs)',
      },
    ],
    simulation: { rules: ['busy'] },
    laboratory: {
      rules: ['busy'],
      async play(stage) {
        await stage.perform(stage.one, { ...waiter, keys: ['another'] });
        await stage.server.kill('SIGSTOP');
        await stage.perform(stage.one, { ...waiter, waitMs: 100 });
        await stage.server.kill('SIGCONT');
      },
    },
  },
  {
    name: 'a channel never left',
    edits: [{ in: 'WakeUp.close', find: 'this.watching?.close();', replace: '' }],
    laboratory: {
      rules: ['leftovers'],
      async play(stage) {
        stage.start(stage.one, longHolder);
        await stage.one.notified('A has it');
        stage.start(stage.two, waiter);
        await stage.listenedTo(KEY);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'nobody told that a hold will end sooner',
    edits: [
      {
        in: 'QUEUE_ACQUIRE',
        find: "redis.call(ARGV[5], ${CHANNEL}, '0')",
        replace: '',
      },
    ],
    onRedis: {
      async play(stage) {
        const [holder, waiter] = [stage.owner('a'), stage.owner('b')];
        await stage.acquire(holder);
        await stage.acquire(waiter);
        const announced = await stage.announcements();
        await stage.reacquire(holder, 1_000);
        await stage.allReceived();
        assert.deepEqual(announced, ['0']);
      },
    },
  },
  {
    name: 'a lost holder keeps its place in the local queue',
    edits: [{ in: 'Releasing.whenLost', find: 'hold.endListener.leave();', replace: '' }],
    simulation: { rules: ['promptness', 'leftovers'] },
  },
];
