import type { Edit } from '../source/edit.js';

/** A deliberate mistake in the stores on a database or in the core, which the simulation of databases shows. */
export interface SqlSimulatedMistake {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Rules of the witness, one of which has to see it. */
  readonly rules: readonly string[];
}

export const SQL_SIMULATED_MISTAKES: readonly SqlSimulatedMistake[] = [
  {
    name: 'an undo releases the key before the session of the acquire has ended',
    edits: [
      {
        in: 'SqlKind.release',
        find: 'if (how.uncertain) await this.lanes.settle(how.uncertain);',
        replace: '',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'an undo trusts a session that has not ended in the server',
    edits: [
      {
        in: 'SqlLanes.settle',
        find: 'if (await this.settleOnce(failed)) return;',
        replace: 'if ((await this.settleOnce(failed)) !== undefined) return;',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'an undo that fails to end a session takes it for ended',
    edits: [
      {
        in: 'SqlKind.release',
        find: 'await this.lanes.settle(how.uncertain);',
        replace: 'await this.lanes.settle(how.uncertain).catch(() => undefined);',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'a late statement is reported without its session',
    edits: [
      {
        in: 'Lane.isLate',
        find: "new SqlFailure(message, 'unknown', { passing: true }, session)",
        replace: "new SqlFailure(message, 'unknown', { passing: true })",
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'a late statement is taken for one that was not executed',
    edits: [
      {
        in: 'Lane.isLate',
        find: "new SqlFailure(message, 'unknown', { passing: true }, session)",
        replace: "new SqlFailure(message, 'not-executed', { passing: true }, session)",
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'an acquire of unknown outcome is repeated as the same owner',
    edits: [
      {
        in: 'Contention.goOnThrough',
        find: 'if (isUnknown && !this.entry) this.beAnotherOwner();',
        replace: '',
      },
    ],
    rules: ['exclusion', 'tokens', 'writes'],
  },
  {
    name: 'the first failure of an undo is its last one',
    edits: [
      {
        in: 'Undo.untilReplied',
        find: 'if (!(error instanceof StoreFailure)) return;',
        replace: 'if (error instanceof Error) return;',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'the lease of a grant counts from the reply',
    edits: [
      {
        in: 'SqlKind.acquire',
        find: 'return { ...reply, since };',
        replace: 'return { ...reply, since: this.runtime.now() };',
      },
    ],
    rules: ['exclusion', 'writes'],
  },
  {
    name: 'a process stays in the wait queue after its last waiter has left',
    edits: [
      {
        in: 'Places.leave',
        find: 'if (isQueued || isCalled) this.leaveQueue(finalKey);',
        replace: '',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'a key is not polled any more once a notification has come',
    edits: [
      {
        in: 'Poller.watch',
        find: 'notified: () => this.wake(key),',
        replace: 'notified: () => { this.wake(key); key.dueAt = Infinity; },',
      },
    ],
    rules: ['wake-up', 'nobody', 'endless'],
  },
  {
    name: 'a lane that has lost its connection does not open another one',
    edits: [{ in: 'Lane.next', find: 'if (!session || session.isOver)', replace: 'if (!session)' }],
    rules: ['nobody'],
  },
  {
    name: 'a lane that could not connect does not try again',
    edits: [
      {
        in: 'Lane.connect',
        find: 'this.connectingSince = undefined; this.next();',
        replace:
          'if (this.session && !this.session.isOver) { this.connectingSince = undefined; this.next(); }',
      },
    ],
    rules: ['nobody'],
  },
  {
    name: 'a sweep that fails is the last one',
    edits: [{ in: 'Sweeper.run', find: 'catch { }', replace: 'catch { return; }' }],
    rules: ['leftovers'],
  },
];
