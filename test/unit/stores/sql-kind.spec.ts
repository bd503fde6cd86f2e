import { beforeEach, describe, expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { ExtendReply } from '../../../lib/core/seam/reply.js';
import type { KindStatements, SqlDialect } from '../../../lib/stores/sql/sql-dialect.js';
import { SqlKind } from '../../../lib/stores/sql/sql-kind.js';
import { SqlLanes } from '../../../lib/stores/sql/sql-lanes.js';
import { raw, SqlFailure, type SqlSession, type Statement } from '../../../lib/stores/sql/sql.js';
import { watched } from '../../support/core/core-under-test.js';
import { claimOn } from '../../support/core/queue-on.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

describe('renewals in a database', () => {
  let runtime: VirtualRuntime;
  let asked: string[];
  /** Keys whose rows have an error of their own, and keys whose rows others have locked. */
  let bad: string[];
  let locked: string[];
  let kind: SqlKind<'exclusive'>;
  let settles: number;
  let lanes: SqlLanes;

  const claims = (...keys: string[]): ExclusiveClaim[] => keys.map((key) => claimOn(key) as ExclusiveClaim);
  const statesOf = (replies: readonly ExtendReply[] | undefined): string[] | undefined =>
    replies?.map(({ status }) => status);

  const extend = (all: readonly ExclusiveClaim[]): Statement<readonly ExtendReply[]> => ({
    sql: raw(''),
    read: () => {
      asked.push(all.map(({ finalKey }) => finalKey).join(' '));
      if (all.some(({ finalKey }) => bad.includes(finalKey)))
        throw new SqlFailure('a check of the row fails', 'not-executed', {});
      const cause = new SqlFailure('row locked', 'not-executed', { transient: true });
      return all.map(({ finalKey }) =>
        locked.includes(finalKey) ? { status: 'failed', cause } : { status: 'held', validForMs: 1_000 },
      );
    },
  });

  beforeEach(() => {
    runtime = new VirtualRuntime();
    [asked, bad, locked, settles] = [[], [], [], 0];
    const session: SqlSession = {
      isOver: false,
      send: async ({ read }) => read(undefined),
      destroy: () => undefined,
    };
    const dialect = {
      ...{ name: 'a database', connect: () => Promise.resolve(session) },
      settle: async (_: SqlSession, run: <T>(statement: Statement<T>) => Promise<T>) => {
        settles += 1;
        await run({ sql: raw(''), read: () => undefined });
        return settles > 1;
      },
    } as unknown as SqlDialect;
    const statements = { extend, release: () => ({ sql: raw(''), read: () => ({ wasHeld: false }) }) };
    lanes = new SqlLanes(dialect, { runtime, timeoutMs: 2_000 }, 1);
    kind = new SqlKind(runtime, lanes, dialect, statements as unknown as KindStatements<ExclusiveClaim>);
  });

  it('one row with an error of its own fails only its own renewal', async () => {
    bad = ['c'];
    const replies = watched(kind.extendMany(claims('a', 'b', 'c', 'd')));
    await runtime.pass(0);
    expect(statesOf(replies.value)).toEqual(['held', 'held', 'failed', 'held']);
  });

  it('rows that others have locked are asked again together, and never keep the rest for long', async () => {
    locked = ['b', 'd'];
    const replies = watched(kind.extendMany(claims('a', 'b', 'c', 'd')));
    await runtime.pass(20);
    locked = ['d'];
    await runtime.pass(200);
    expect(statesOf(replies.value)).toEqual(['held', 'held', 'held', 'failed']);
    expect(asked).toEqual(['a b c d', 'b d', 'b d', 'b d', 'd', 'd']);
  });

  it('undos of one session share the requests that end it, until it has ended', async () => {
    const uncertain = new SqlFailure('no answer', 'unknown', {}, {
      isOver: true,
      destroy: () => undefined,
    } as unknown as SqlSession);
    const undo = (key: string): Promise<unknown> =>
      kind.release(claims(key)[0]!, { uncertain }).then(
        () => 'done',
        () => 'failed',
      );
    const first = watched(Promise.all(['a', 'b', 'c'].map(undo)));
    await runtime.pass(0);
    expect([settles, first.value]).toEqual([1, ['failed', 'failed', 'failed']]);
    const second = watched(Promise.all(['a', 'b', 'c'].map(undo)));
    await runtime.pass(0);
    expect([settles, second.value]).toEqual([2, ['done', 'done', 'done']]);
    const third = watched(undo('d'));
    await runtime.pass(0);
    expect([settles, third.value]).toEqual([2, 'done']);
  });
});
