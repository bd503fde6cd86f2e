import type { Claim, ExclusiveClaim, PermitClaim } from '../../../lib/core/seam/claim.js';
import type { ReleaseOptions } from '../../../lib/core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { KindStatements, Waiting } from '../../../lib/stores/sql/sql-dialect.js';
import type { Sight, WakeUps } from '../../../lib/stores/sql/places.js';
import { NO_ROW, type OneOf, type Statement, type Together } from '../../../lib/stores/sql/sql.js';
import type { SimDatabase } from './sim-database.js';
import { statement } from './sim-sql.js';
import type { SqlMode } from './sql-plan.js';
import { notifyAll, passOn, type SimWakeUps } from './wake-ups.js';

/** What the statements of one process have in common. */
export interface KindHost {
  readonly mode: SqlMode;
  /** This process in wait queues. */
  readonly me: string;
  /** Name of the bell of this process. */
  readonly bell: string;
  readonly wakeUps: SimWakeUps;
  /** Failure for a row that others have locked. */
  rowLocked(): unknown;
  saw(what: string): void;
}

/** Replies in the order of the claims. Rows that others have locked are skipped. */
const extendAll = <C extends Claim>(
  claims: readonly C[],
  { rowLocked, saw }: KindHost,
  extendOne: (database: SimDatabase, claim: C) => number | undefined,
): Statement<readonly ExtendReply[]> =>
  statement('extend', (database) =>
    claims.map((claim): ExtendReply => {
      if (database.isLocked(claim.finalKey)) {
        saw('a renewal skips a locked row');
        return { status: 'failed', cause: rowLocked() };
      }
      const validForMs = extendOne(database, claim);
      return validForMs === undefined ? { status: 'lost' } : { status: 'held', validForMs };
    }),
  );

/** Several requests as one statement. Rows that others have locked are skipped. */
const together = <C extends Claim, T>(
  name: 'acquire' | 'release',
  { saw }: KindHost,
  one: (database: SimDatabase, claim: C) => OneOf<T>,
): Together<C, T> => ({
  many: (claims) =>
    statement(name, (database) => {
      saw(`several: ${name}`);
      return claims.map((claim) => {
        if (!database.isLocked(claim.finalKey)) return one(database, claim);
        saw(`a batch skips a locked row: ${name}`);
        return undefined;
      });
    }),
});

/** Exclusive locks, as `MysqlExclusive` or `PostgresExclusive`. */
export class SimExclusive implements KindStatements<ExclusiveClaim> {
  readonly free: Together<ExclusiveClaim, AcquireReply>;
  readonly releases: Together<ExclusiveClaim, ReleaseReply>;
  readonly keeps: Together<ExclusiveClaim, ReleaseReply>;
  readonly wakeUps: WakeUps | undefined;

  constructor(private readonly host: KindHost) {
    const { bell, saw } = host;
    this.wakeUps = host.wakeUps.exclusive;
    this.free = {
      ...together<ExclusiveClaim, AcquireReply>('acquire', host, ({ table }, claim) =>
        table.rows.has(claim.finalKey) ? table.takeFree(claim, bell) : NO_ROW,
      ),
      one: (claim) =>
        statement(
          'acquire',
          ({ table }) => table.takeFree(claim, bell),
          () => [claim.finalKey],
        ),
      inserting: together<ExclusiveClaim, AcquireReply>('acquire', host, ({ table }, claim) => {
        saw('several new rows');
        return table.rows.has(claim.finalKey) ? undefined : table.acquire(claim, host.me, bell);
      }),
    };
    this.releases = together<ExclusiveClaim, ReleaseReply>('release', host, (database, claim) =>
      this.end(database, claim),
    );
    this.keeps = together<ExclusiveClaim, ReleaseReply>('release', host, (database, claim) =>
      this.end(database, claim, claim.leaseMs),
    );
  }

  acquire(claim: ExclusiveClaim): Statement<AcquireReply & Partial<Sight>> {
    const { mode, me, bell, saw } = this.host;
    const { finalKey } = claim;
    return statement(
      'acquire',
      ({ table }) => {
        const [head, second] = table.rows.get(finalKey)?.queue ?? [];
        const reply = table.acquire(claim, me, bell);
        if (reply.status === 'granted' && second !== undefined)
          saw(head === me ? 'the head of a wait queue gets the key' : 'a head misses its turn');
        return reply;
      },
      ({ table }) => (mode === 'notifications' && table.onlyReads(claim, me) ? [] : [finalKey]),
    );
  }

  extend(claims: readonly ExclusiveClaim[]): Statement<readonly ExtendReply[]> {
    return extendAll(claims, this.host, ({ table }, claim) => table.extend(claim));
  }

  release(claim: ExclusiveClaim, { keepForMs }: ReleaseOptions): Statement<ReleaseReply> {
    const none = { wasHeld: false, othersWaiting: false };
    return statement(
      'release',
      (database) => this.end(database, claim, keepForMs) ?? none,
      () => [claim.finalKey],
    );
  }

  private end(
    database: SimDatabase,
    { finalKey, owner }: ExclusiveClaim,
    keepForMs?: number,
  ): ReleaseReply | undefined {
    const reply = database.table.release(finalKey, owner, keepForMs);
    if (reply.othersWaiting && this.host.mode === 'notifications') passOn(database, finalKey);
    return reply.wasHeld ? reply : undefined;
  }

  peek(claims: readonly ExclusiveClaim[]): Statement<readonly Sight[]> {
    const { me } = this.host;
    return statement('peek', ({ table }) => claims.map(({ finalKey }) => table.peek(finalKey, me)));
  }
}

/** Permits, as `MysqlPermit` or `PostgresPermit`. */
export class SimPermit implements KindStatements<PermitClaim> {
  readonly wakeUps: WakeUps | undefined;
  readonly releases: Together<PermitClaim, ReleaseReply>;

  constructor(private readonly host: KindHost) {
    this.wakeUps = host.wakeUps.permit;
    this.releases = together<PermitClaim, ReleaseReply>('release', host, (database, claim) => {
      const reply = this.end(database, claim);
      return reply.wasHeld ? reply : undefined;
    });
  }

  acquire(claim: PermitClaim, { othersWait }: Waiting): Statement<AcquireReply> {
    const { me } = this.host;
    return statement(
      'acquire',
      ({ permits }) => permits.acquire(claim, me, !othersWait),
      () => [claim.finalKey],
    );
  }

  extend(claims: readonly PermitClaim[]): Statement<readonly ExtendReply[]> {
    return extendAll(claims, this.host, ({ permits }, claim) => permits.extend(claim));
  }

  release(claim: PermitClaim, { keepForMs }: ReleaseOptions): Statement<ReleaseReply> {
    return statement(
      'release',
      (database) => this.end(database, claim, keepForMs),
      () => [claim.finalKey],
    );
  }

  private end(database: SimDatabase, { finalKey, owner }: PermitClaim, keepForMs?: number): ReleaseReply {
    const { me, mode } = this.host;
    const isQueued = (database.table.rows.get(finalKey)?.queue.length ?? 0) > 0;
    const reply = database.permits.release(finalKey, owner, me, keepForMs);
    if (reply.wasHeld && isQueued && mode === 'notifications') notifyAll(database, finalKey);
    return reply;
  }

  peek(claims: readonly PermitClaim[]): Statement<readonly Sight[]> {
    return statement('peek', ({ permits }) =>
      claims.map(({ finalKey }) => ({ freeInMs: permits.peek(finalKey) })),
    );
  }
}
