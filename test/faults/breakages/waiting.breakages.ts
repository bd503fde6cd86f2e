import { setTimeout as sleep } from 'node:timers/promises';
import type { Task } from '../workload/task.js';
import type { Breakage } from './breakage.js';
import { holder, KEY } from './tasks.js';

/** Who is not woken waits for the end of a long lease. */
const longHolder = holder('A', { waitMs: 0, leaseMs: 5_000 });

const waiter: Task = { style: 'withLock', keys: [KEY], waitMs: 1_500, steps: [] };

/** Mistakes in waiting and in being woken. */
export const WAITING_BREAKAGES: readonly Breakage[] = [
  {
    name: 'no second try after subscribing',
    patches: [
      {
        file: 'stores/redis/redis-subscriber.ts',
        find: '          channel.live = true;\n          this.hint(channel);',
        replace: '          channel.live = true;',
      },
    ],
    seenBy: ['promptness'],
    async play(stage) {
      stage.start(stage.one, longHolder);
      await stage.one.told('A has it');
      // Its SUBSCRIBE does not arrive before the lock is free.
      const subscriber = stage.connection(stage.two, 'subscriber');
      subscriber.blackhole(['toServer']);
      const asked = stage.asking(stage.two, 'acquire');
      stage.start(stage.two, waiter);
      await asked;
      await sleep(60);
      stage.one.go('A ends');
      await stage.free(KEY);
      subscriber.restore();
    },
  },
  {
    name: 'messages counted only from the reply on',
    patches: [
      {
        file: 'core/contend.ts',
        find: 'await wakeUp(around, queue, wait, hintsBefore,',
        replace: 'await wakeUp(around, queue, wait, queue.hints,',
      },
    ],
    seenBy: ['promptness'],
    async play(stage) {
      stage.start(stage.one, longHolder);
      await stage.one.told('A has it');
      const commands = stage.connection(stage.two, 'commands');
      const askedOnce = stage.asking(stage.two, 'acquire');
      stage.start(stage.two, waiter);
      await askedOnce;
      // It asks again once it is subscribed. That answer is overtaken by the message of the release.
      await stage.asking(stage.two, 'acquire', () => commands.blackhole(['toClient']));
      await sleep(30);
      const message = stage.arriving(stage.two, 'subscriber', 'message');
      stage.one.go('A ends');
      await message;
      await sleep(30);
      commands.restore();
    },
  },
  {
    name: 'no re-try after the subscriber reconnects',
    patches: [
      {
        file: 'stores/redis/redis-subscriber.ts',
        find: 'this.subscribe(names.slice(i, i + BATCH));',
        replace:
          'void this.#client.subscribe(...names.slice(i, i + BATCH)).then(() => this.channels.forEach((one) => (one.live = true)));',
      },
      {
        file: 'stores/redis/redis-subscriber.ts',
        find: 'if (deafened.length === 0) return;',
        replace: 'if (deafened.length >= 0) return;',
      },
    ],
    seenBy: ['promptness'],
    async play(stage) {
      stage.start(stage.one, longHolder);
      await stage.one.told('A has it');
      stage.start(stage.two, waiter);
      await stage.listenedTo(KEY);
      await sleep(100);
      stage.hampered(stage.two, 400);
      const { proxy } = stage.two;
      proxy.refuse();
      stage.connection(stage.two, 'subscriber').cut();
      stage.one.go('A ends');
      await stage.free(KEY);
      await proxy.restore();
    },
  },
  {
    name: 'a waiter dropped when its neighbour aborts',
    patches: [
      {
        file: 'core/key-queue.ts',
        find: 'const abort = (): void =>\n        waiter.refuse(',
        replace: 'const abort = (): void =>\n        void this.waiters.clear() ?? waiter.refuse(',
      },
    ],
    seenBy: ['promptness'],
    async play(stage) {
      stage.start(stage.one, longHolder);
      await stage.one.told('A has it');
      const aborted = stage.perform(stage.one, { ...waiter, abortAfterMs: 50 });
      stage.start(stage.one, waiter);
      await aborted;
      stage.one.go('A ends');
    },
  },
  {
    name: 'a store that fails passes for a lock that is taken',
    patches: [
      {
        file: 'core/contend.ts',
        find: "throw storeError(wait.key, failure, 'acquiring', runtime.now() - wait.startedAt);",
        replace: 'throw takenError(wait.key, runtime.now() - wait.startedAt, wait.waitMs);',
      },
    ],
    seenBy: ['busy'],
    async play(stage) {
      await stage.perform(stage.one, { ...waiter, keys: ['another'] });
      await stage.server.kill('SIGSTOP');
      await stage.perform(stage.one, { ...waiter, waitMs: 100 });
      await stage.server.kill('SIGCONT');
    },
  },
  {
    name: 'a channel never left',
    patches: [{ file: 'core/key-queue.ts', find: '    this.watching?.close();\n', replace: '' }],
    seenBy: ['leftovers'],
    async play(stage) {
      stage.start(stage.one, longHolder);
      await stage.one.told('A has it');
      stage.start(stage.two, waiter);
      await stage.listenedTo(KEY);
      stage.one.go('A ends');
    },
  },
];
