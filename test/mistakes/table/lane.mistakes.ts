import assert from 'node:assert/strict';
import type { Lane } from '../../../lib/stores/sql/lane.js';
import type { SqlFailure } from '../../../lib/stores/sql/sql.js';
import { formOf, replyTo, TIMEOUT_MS, ToldLane } from '../../support/sql/told-lane.js';
import type { Edit } from '../source/edit.js';

/** What these mistakes are in. */
export interface LaneLibrary {
  readonly Lane: typeof Lane;
  readonly SqlFailure: typeof SqlFailure;
}

/** A deliberate mistake in how a lane sends requests together, which a lane alone shows. */
export interface LaneMistake {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** What the mistake makes fail, with an `AssertionError`. With the library as it is, nothing does. */
  play(library: LaneLibrary): Promise<void>;
}

/** One mistake for each rule of requests that are one statement. */
export const LANE_MISTAKES: readonly LaneMistake[] = [
  {
    name: 'requests about one key overtake each other',
    edits: [
      {
        in: 'RequestQueue.more',
        find: 'for (const ready of this.ready) {',
        replace: 'for (const ready of [new Set(this.all)]) {',
      },
      { in: 'RequestQueue.more', find: 'fits(one) && ready.delete(one)', replace: 'fits(one)' },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      for (const key of ['a', 'k', 'k']) told.ask(told.take, key);
      await told.proceed();
      assert.equal(told.sent[1], 'take a k');
    },
  },
  {
    name: 'acquires, releases and releases that keep a key share a statement',
    edits: [{ in: 'Lane.companions', find: 'other.by === by', replace: 'other.by !== undefined' }],
    async play(library) {
      const told = await ToldLane.busy(library);
      for (const name of ['release', 'keep']) told.ask(formOf(name), `${name}d`, { urgency: 'release' });
      told.ask(told.take, 'taken');
      await told.proceed();
      assert.deepEqual(told.sent.slice(1), ['alone released', 'alone keepd', 'alone taken']);
    },
  },
  {
    name: 'a batch waits for companions',
    edits: [
      {
        in: 'Lane.next',
        find: 'if (!request) return;',
        replace:
          'if (!request) return; if (request.by && unsent.all.size < 2) return unsent.repeat(request, Infinity);',
      },
    ],
    async play(library) {
      const told = new ToldLane(library);
      const one = told.ask(told.take, 'a');
      await told.proceed();
      await told.runtime.pass(0);
      await told.proceed();
      assert.equal(one.value, 'alone a');
    },
  },
  {
    name: 'a batch of one has the statement for several',
    edits: [{ in: 'Lane.send', find: 'if (requests.length > 1)', replace: 'if (by)' }],
    async play(library) {
      const told = await ToldLane.busy(library);
      told.ask(told.take, 'a');
      await told.proceed();
      assert.deepEqual(told.sent.slice(1), ['alone a']);
    },
  },
  {
    name: 'an error of one row fails all requests of the statement',
    edits: [
      {
        in: 'Lane.failed',
        find: 'if (requests.length > 1 && mayBeOfOneRow(failure))',
        replace: 'if (requests.length > 999)',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      const asked = ['a', 'bad', 'c'].map((key) => told.ask(told.take, key));
      told.reply = (text) => {
        if (text.includes('bad')) throw new library.SqlFailure('a check fails', 'not-executed', {});
        return replyTo(text);
      };
      await told.proceed();
      assert.deepEqual(
        asked.map(({ state }) => state),
        ['fulfilled', 'rejected', 'fulfilled'],
      );
    },
  },
  {
    name: 'the others of a statement wait for a locked row again and again',
    edits: [
      {
        in: 'Lane.failed',
        find: 'this.repeat(request, failure.transient ? undefined : request.by);',
        replace: 'this.repeat(request, request.by);',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      for (const key of ['a', 'locked', 'c', 'd', 'e']) told.ask(told.take, key);
      told.reply = (text) => {
        if (text.includes('locked'))
          throw new library.SqlFailure('locked', 'not-executed', { transient: true });
        return replyTo(text);
      };
      await told.proceed();
      assert.deepEqual(
        told.sent.filter((text) => text.includes('locked')),
        ['take a locked c d e', 'alone locked'],
      );
    },
  },
  {
    name: 'companions are those that the queue finds first, and not those that waited longest',
    edits: [
      {
        in: 'RequestQueue.more',
        find: 'for (const one of ready) {',
        replace: 'for (const one of [...ready].reverse()) {',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      for (const key of ['a', 'b', 'c', 'd', 'e']) told.ask(told.take, key);
      await told.proceed();
      assert.equal(told.sent[1], 'take a b c d e');
    },
  },
  {
    name: 'requests that an overloaded server refused are asked again',
    edits: [
      {
        in: 'mayBeOfOneRow',
        find: 'isRefused(failure) ||',
        replace: 'failure instanceof StoreFailure ||',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      const asked = ['a', 'b'].map((key) => told.ask(told.take, key));
      told.reply = (text) => {
        if (text.startsWith('take'))
          throw new library.SqlFailure('too many', 'not-executed', { passing: true });
        return replyTo(text);
      };
      await told.proceed();
      assert.deepEqual(told.sent.slice(1), ['take a b']);
      assert.deepEqual(
        asked.map(({ state }) => state),
        ['rejected', 'rejected'],
      );
    },
  },
  {
    name: 'a statement without a reply is of unknown outcome for its first request only',
    edits: [
      {
        in: 'Lane.rejectAll',
        find: 'request.reject(failure);',
        replace:
          "request.reject(request === requests[0] ? failure : new SqlFailure('', 'not-executed', { passing: true }));",
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      await told.replies();
      await told.keepBusy();
      const asked = ['a', 'b'].map((key) => told.ask(told.take, key));
      await told.replies();
      await told.runtime.pass(2 * TIMEOUT_MS);
      assert.deepEqual(
        asked.map(({ error }) => (error as SqlFailure).outcome),
        ['unknown', 'unknown'],
      );
    },
  },
  {
    name: 'a slow server gets as much in one statement as before',
    edits: [{ in: 'Lane.endsStatement', find: 'else if (rows > 1) this.rows = rows >> 1;', replace: '' }],
    async play(library) {
      const told = await ToldLane.busy(library);
      for (let i = 0; i < 12; i++) told.ask(told.take, `${i}`, { until: Infinity });
      await told.replies();
      await told.runtime.pass(TIMEOUT_MS / 2);
      for (let i = 12; i < 24; i++) told.ask(told.take, `${i}`, { until: Infinity });
      await told.replies();
      assert.equal(told.sent.at(-1)!.split(' ').length - 1, 6);
    },
  },
  {
    name: 'a server that is fast again never gets more in one statement',
    edits: [
      {
        in: 'Lane.endsStatement',
        find: 'if (!isSlow) this.rows = Math.min(MAX_ROWS, 2 * this.rows);',
        replace: 'if (!isSlow) return;',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      for (let i = 0; i < 40; i++) told.ask(told.take, `${i}`, { until: Infinity });
      await told.replies();
      await told.runtime.pass(TIMEOUT_MS / 2);
      for (let i = 40; i < 99; i++) told.ask(told.take, `${i}`, { until: Infinity });
      await told.proceed();
      assert.deepEqual(
        told.sent.slice(1).map((text) => text.split(' ').length - 1),
        [40, 20, 39],
      );
    },
  },
  {
    name: 'a request that was withdrawn between two of its statements is sent again',
    edits: [
      {
        in: 'UnsentRequests.wait',
        find: 'if (withdrawnBy.some(({ aborted }) => aborted)) return withdraw();',
        replace: '',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library);
      const signal = new AbortController();
      told.ask(told.take, 'a', { withdrawnBy: [signal.signal] });
      told.ask(told.take, 'b');
      told.reply = (text) => {
        if (text !== 'take a b') return replyTo(text);
        signal.abort();
        return [undefined, 'got b'];
      };
      await told.proceed();
      assert.deepEqual(told.sent.slice(1), ['take a b']);
    },
  },
  {
    name: 'a connection that would lock the gaps between rows has several in one statement',
    edits: [
      { in: 'Lane.companions', find: 'if (!by || sendsAlone) return [];', replace: 'if (!by) return [];' },
    ],
    async play(library) {
      const told = await ToldLane.busy(library, { sendsAlone: true });
      for (const key of ['a', 'b']) told.ask(told.take, key);
      await told.proceed();
      assert.deepEqual(told.sent.slice(1), ['alone a', 'alone b']);
    },
  },
  {
    name: 'a request that was skipped waits for its row, and its lane with it',
    edits: [
      {
        in: 'Lane.replied',
        find: 'request.isSkipped = requests.length > 1 && value === undefined;',
        replace: '',
      },
    ],
    async play(library) {
      const told = await ToldLane.busy(library, {}, true);
      for (const key of ['a', 'b']) told.ask(told.take, key);
      told.reply = (text) => (text === 'take a b' ? [undefined, 'got b'] : replyTo(text));
      await told.proceed();
      assert.deepEqual(told.sent.slice(1), ['take a b', 'probe a', 'alone a']);
    },
  },
];
