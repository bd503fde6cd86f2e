import { expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MysqlDialect } from '../../../lib/stores/mysql/mysql-dialect.js';
import type { MakeStatement } from '../../../lib/stores/sql/lane.js';
import type { KindStatements, SqlDialect } from '../../../lib/stores/sql/sql-dialect.js';
import { SqlKind } from '../../../lib/stores/sql/sql-kind.js';
import { takenOf } from '../../../lib/stores/sql/places.js';
import type { Statement } from '../../../lib/stores/sql/sql.js';
import type { SqlLanes } from '../../../lib/stores/sql/sql-lanes.js';
import { grantOf } from '../../../lib/stores/sql/sql-terms.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';
import { claimFor } from '../../support/stores/harness.js';

const LOCKED = {
  status: 'failed',
  cause: new StoreFailure('others have locked the row', 'not-executed', { transient: true }),
} as const;

it('a renewal whose row was locked is not repeated behind the release, which keeps the key for less', async () => {
  const runtime = new VirtualRuntime();
  const renewed: string[][] = [];
  const statements = {
    extend: (claims: readonly ExclusiveClaim[]) => renewed.push(claims.map(({ finalKey }) => finalKey)),
    release: () => undefined,
  } as unknown as KindStatements<ExclusiveClaim>;
  const lanes = {
    parted: (claims: readonly ExclusiveClaim[]) => [claims.map((claim, at) => ({ claim, at }))],
    laneOf: () => ({ withdraw: () => undefined }),
    run: (_key: string, make: MakeStatement<unknown>, { urgency }: { urgency: string }) => {
      make(0);
      return Promise.resolve(urgency === 'renewal' ? renewed.at(-1)!.map(() => LOCKED) : { wasHeld: true });
    },
  } as unknown as SqlLanes;
  const kind = new SqlKind(runtime, lanes, {} as SqlDialect, statements);
  const claims = ['a', 'b'].map((key) => claimFor(key));
  const replies = kind.extendMany(claims);
  const failed = expect(replies).rejects.toBe(LOCKED.cause);
  await settled();
  await kind.release(claims[0]!, { keepForMs: 50 });
  await runtime.pass(1_000);
  await failed;
  expect(renewed).toEqual([['a', 'b'], ['b'], ['b'], ['b'], ['b'], ['b']]);
});

it('a grant to a service that did not wait wakes the service of its store that does, and leaves its place', async () => {
  const told: unknown[] = [];
  const taken = takenOf(1_000, 1, true);
  const replies = [taken, taken, grantOf(claimFor('a'), 1)];
  const statements = {
    acquire: (_claim: ExclusiveClaim, how: unknown) => told.push(how),
  } as unknown as KindStatements<ExclusiveClaim>;
  const lanes = {
    run: (_key: string, make: MakeStatement<unknown>) => {
      make(0);
      return Promise.resolve(replies.shift());
    },
  } as unknown as SqlLanes;
  const kind = new SqlKind(new VirtualRuntime(), lanes, {} as SqlDialect, statements);
  const owned = (service: string, number: number) => ({
    ...claimFor('a', { waits: true }),
    owner: `${service}-1111-8111-8111-000000000000:${number}`,
  });
  const [waits, comes] = [owned('11111111', 1), owned('22222222', 1)];
  await kind.acquire(waits);
  let notified = 0;
  const nothing = (): void => undefined;
  kind.watch(waits, { notified: () => void (notified += 1), failed: nothing });
  await kind.acquire(owned('11111111', 2));
  await kind.acquire(comes);
  expect(told).toEqual([{ othersWait: false }, { othersWait: false }, { othersWait: true }]);
  expect(notified).toBe(1);
});

it.each([1, 0])(
  'a waiter that leaves rings its bell if MySQL has removed it from the wait queue: %i rows',
  async (affectedRows) => {
    const runtime = new VirtualRuntime();
    let rings = 0;
    const nothing = (): void => undefined;
    const wakeUps = { serve: nothing, await: nothing, ring: () => void (rings += 1) };
    const statements = { acquire: nothing, wakeUps } as unknown as KindStatements<ExclusiveClaim>;
    const lanes = {
      run: (_key: string, make: MakeStatement<unknown>) => {
        make(0);
        return Promise.resolve(takenOf(1_000, 1, true));
      },
      about: (_key: string, { read }: Statement<boolean>) => Promise.resolve(read({ affectedRows })),
    } as unknown as SqlLanes;
    const connection = () => ({});
    const dialect = new MysqlDialect({ runtime, connection, table: 't', pooled: true, timeoutMs: 1_000 });
    const kind = new SqlKind(runtime, lanes, dialect, statements);
    const claim = claimFor('a', { waits: true });
    const watch = kind.watch(claim, { notified: nothing, failed: nothing });
    await kind.acquire(claim);
    watch.close();
    await settled();
    expect(rings).toBe(affectedRows);
  },
);
