import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/async.js';
import type { Task } from '../workload/task.js';
import type { Breakage } from './breakage.js';
import { KEY } from './tasks.js';

/** Whatever is left of it stays for long enough to be seen. */
const caller: Task = { style: 'acquire', keys: [KEY], waitMs: 1_000, leaseMs: 8_000, steps: [] };

/** Mistakes in giving back what nobody has. */
export const UNDOING_BREAKAGES: readonly Breakage[] = [
  {
    name: 'no undo after a timed-out acquire',
    patches: [
      {
        file: 'core/contend.ts',
        find: "if (failure.outcome === 'unknown') settler.settle(claim, failure, runtime.now() + claim.leaseMs);\n  else if",
        replace: "if (failure.outcome !== 'unknown')\n  if",
      },
    ],
    seenBy: ['leftovers', 'ghosts'],
    async play(stage) {
      stage.hampered(stage.one, 1_000);
      const asked = stage.asking(stage.one, 'acquire', (connection) => connection.swallowReplies());
      stage.start(stage.one, caller);
      await asked;
      await stage.done();
    },
  },
  {
    name: 'an undo trusted on another connection',
    patches: [
      {
        file: 'stores/redis/redis.store.ts',
        find: 'const ended = !sameConnection && (await this.endSession(session));',
        replace: 'const ended = !sameConnection;',
      },
    ],
    seenBy: ['leftovers', 'ghosts'],
    async play(stage) {
      stage.hampered(stage.one, 1_500);
      const old = stage.connection(stage.one, 'commands');
      old.blackhole(['toServer']);
      await stage.perform(stage.one, caller);
      // All is undone, as far as the worker knows. Then what it has sent on the old connection arrives.
      await stage.one.stop();
      old.restore();
      await until(() => !stage.one.proxy.connections.includes(old), { what: 'the old connection has ended' });
      await sleep(50);
    },
  },
  {
    name: 'a grant that came too late for its caller kept',
    patches: [
      {
        file: 'core/contend.ts',
        find: '  around.settler.settle(claim, undefined, hold.mayLastUntil);\n  if (over)',
        replace: '  if (over)',
      },
    ],
    seenBy: ['leftovers', 'ghosts'],
    async play(stage) {
      stage.connection(stage.one, 'commands').delay(200, ['toClient']);
      stage.start(stage.one, { ...caller, abortAfterMs: 60 });
      await stage.done();
    },
  },
];
