import { setTimeout as sleep } from 'node:timers/promises';
import { KEY } from '../../faults/directed/tasks.js';
import type { Task } from '../../faults/workload/task.js';
import { until } from '../../support/async.js';
import type { Mistake } from '../mistake.js';

/** Whatever is left of it stays for long enough to be seen. */
const caller: Task = { style: 'acquire', keys: [KEY], waitMs: 1_000, leaseMs: 8_000, steps: [] };

/** Mistakes in giving back what nobody has. */
export const UNDOING_MISTAKES: readonly Mistake[] = [
  {
    name: 'no undo after an acquire that was not answered',
    edits: [
      {
        in: 'StoreRequests.acquireFailed',
        find: 'this.undo.begin({ claim, uncertain: failure, until: this.mayLastUntil(claim) });',
        replace: '{}',
      },
    ],
    simulation: { rules: ['leftovers'] },
    laboratory: {
      rules: ['leftovers', 'ghosts'],
      async play(stage) {
        stage.hampered(stage.one, 1_000);
        const requested = stage.requesting(stage.one, 'acquire', (connection) => connection.swallowReplies());
        stage.start(stage.one, caller);
        await requested;
        await stage.done();
      },
    },
  },
  {
    name: 'an undo trusted on another connection',
    edits: [
      {
        in: 'RedisLink.releaseForCertain',
        find: '!sameConnection && (await this.endSession(session))',
        replace: '!sameConnection',
      },
    ],
    simulation: { rules: ['leftovers'], faults: ['cut', 'half-open'] },
    laboratory: {
      rules: ['leftovers', 'ghosts'],
      async play(stage) {
        stage.hampered(stage.one, 1_500);
        const old = stage.connection(stage.one, 'commands');
        old.blackhole(['toServer']);
        await stage.perform(stage.one, caller);
        // All is undone, as far as the worker knows. Then what it has sent on the old connection arrives.
        await stage.one.stop();
        old.restore();
        await until(() => !stage.one.link.connections.includes(old), {
          what: 'the old connection has ended',
        });
        await sleep(50);
      },
    },
  },
  {
    name: 'a grant that came too late for its caller kept',
    edits: [
      {
        in: 'Contention.accept',
        find: 'core.undo.begin({ claim, until: hold.inStore.mayLastUntil });',
        replace: '',
      },
    ],
    laboratory: {
      rules: ['leftovers', 'ghosts'],
      async play(stage) {
        stage.connection(stage.one, 'commands').delay(200, ['toClient']);
        stage.start(stage.one, { ...caller, abortAfterMs: 60 });
        await stage.done();
      },
    },
  },
  {
    name: 'a failed release not tried again',
    edits: [
      {
        in: 'Releasing.failed',
        find: 'core.requests.releaseFailed(orphanOf(hold), failure);',
        replace: 'core.requests.failed(failure);',
      },
    ],
    simulation: { rules: ['leftovers'] },
  },
  {
    name: 'renewals without an answer forgotten when a lost hold is given back',
    edits: [
      { in: 'TimeInStore.mayLast', find: 'this.lastUntil = Math.max(this.lastUntil, until);', replace: '' },
    ],
    simulation: { rules: ['leftovers'] },
  },
];
