import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ExclusiveClaim, PermitClaim } from '../../../lib/core/seam/claim.js';
import type { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { until } from '../../support/async.js';
import type { ForeignTransaction } from '../../support/foreign-transaction.js';
import type { SqlLab, SqlStoreOptions } from '../../support/sql/sql-lab.js';
import { storeHost } from '../../support/stores/store-host.js';

const LEASE_MS = 30_000;

let keys = 0;
let owners = 0;

/** Stores of a library, perhaps a broken one, on a real server: for short schedules about one key. */
export class SqlStage implements AsyncDisposable {
  /** The final key. */
  readonly key = `stage-${(keys += 1)}`;
  private readonly opened: AsyncDisposable[] = [];

  /** @param make creates a store of the library */
  constructor(
    readonly lab: SqlLab,
    private readonly make: (options: SqlStoreOptions) => SqlStore,
  ) {}

  /** Opens a store as another process would have it. */
  async store(options: SqlStoreOptions = {}): Promise<SqlStore> {
    const store = this.make(options);
    this.opened.push({ [Symbol.asyncDispose]: () => store.close() });
    await store.open(storeHost({ watchdogMs: LEASE_MS }));
    return store;
  }

  /** Claim of a new owner. */
  claim(more: Partial<ExclusiveClaim> = {}): ExclusiveClaim {
    const owner = `owner-${(owners += 1)}`;
    return {
      kind: 'exclusive',
      finalKey: this.key,
      owner,
      leaseMs: LEASE_MS,
      tokens: 1,
      waits: false,
      ...more,
    };
  }

  permitClaim(of: number): PermitClaim {
    return { ...this.claim({ tokens: 0 }), kind: 'permit', of };
  }

  /** Sets columns of the row of the key. */
  async set(assignments: string): Promise<void> {
    await this.lab.query(`UPDATE nest_lock SET ${assignments} WHERE name = '${this.key}' AND member = ''`);
  }

  /** Resolves with a column of the row of a key. */
  async column(name: 'fence' | 'queue' | 'until', key = this.key): Promise<string> {
    const [row] = await this.lab.query(
      `SELECT ${name} AS value FROM nest_lock WHERE name = '${key}' AND member = ''`,
    );
    return String(row!['value']);
  }

  /** A transaction of another user that has run a statement. It is rolled back in the end. */
  async transaction(statement: string): Promise<ForeignTransaction> {
    const transaction = await this.lab.transaction(statement);
    this.opened.push(transaction);
    return transaction;
  }

  /** Locks the rows of the key, as a transaction of another user. */
  lockedRows(): Promise<ForeignTransaction> {
    return this.transaction(`SELECT * FROM nest_lock WHERE name = '${this.key}' FOR UPDATE`);
  }

  /** Resolves when this number of statements waits for a row. */
  async blocked(count: number): Promise<void> {
    const isSo = async (): Promise<boolean> => (await this.lab.blocked()) === count;
    await until(isSo, { what: `${count} statements wait for a row` });
  }

  /** Resolves with true as soon as a statement waits for a row, and with false when the request settles before. */
  async blockedDuring(request: Promise<unknown>): Promise<boolean> {
    let isOver = false;
    let isBlocked = false;
    const over = (): void => void (isOver = true);
    void request.then(over, over);
    const seen = async (): Promise<boolean> => {
      const blocked = await this.lab.blocked();
      isBlocked = blocked > 0 && !isOver;
      return isBlocked || isOver;
    };
    await until(seen, { what: 'a statement waits for a row, or the request is over' });
    return isBlocked;
  }

  /** Resolves when a store has sent all that it sends by itself after a request about the key. */
  async settled(store: SqlStore): Promise<void> {
    await nextTurn();
    await nextTurn();
    await store.inspect(this.key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}
