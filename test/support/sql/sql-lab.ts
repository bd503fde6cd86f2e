import type { Lease } from '../../../lib/core/lease/lease.js';
import type { LockService } from '../../../lib/nest/service/lock.service.js';
import type { MysqlStoreOptions } from '../../../lib/stores/mysql/mysql.store.js';
import type { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { until } from '../async.js';
import type { ForeignTransaction } from '../foreign-transaction.js';
import { openLocksOn, type OpenLocksOn, type StoreLocksOptions } from '../stores/open-locks-on.js';
import { TcpProxy } from '../tcp-proxy.js';

/** Options that the stores on all databases have. */
export type SqlStoreOptions = Omit<MysqlStoreOptions, 'uri' | 'options'>;

/** Keys of {@link SqlLab.releaseBeforeDeadWaiters}. */
const WAITED_FOR = ['lock-released', 'lock-forced', 'permit-released', 'permit-forced'];

const tryAcquire = (locks: LockService, key: string): Promise<Lease | null> =>
  key.startsWith('permit') ? locks.permits(key, { permits: 1 }).tryAcquire() : locks.tryAcquire(key);

let keys = 0;

/** Returns a key that no other test of this file uses. It can name a table or a user, too. */
export const newKey = (name = 'key'): string => `${name}_${(keys += 1)}`;

/** Name of a key in the table, with the default prefix. */
export const rowName = (key: string): string => `lock:${key}`;

/** Row of a statement, with its columns by name. */
export type SqlRow = Readonly<Record<string, unknown>>;

interface AdminConnection {
  query(statements: string): Promise<unknown>;
  end(): Promise<void>;
}

export interface SqlServer {
  readonly host: string;
  readonly port: number;
  /** Address of the database for the lock user. */
  readonly uri: string;
  adminConnection(database: string): Promise<AdminConnection>;
  stop(): Promise<void>;
}

/** One database server with the table of the locks. What was opened through it ends with it. */
export abstract class SqlLab<
  Server extends SqlServer = SqlServer,
  Options extends SqlStoreOptions = SqlStoreOptions,
> implements AsyncDisposable {
  private readonly opened: AsyncDisposable[] = [];
  private readonly services = new Set<OpenLocksOn>();

  /** @param now the server's clock, as the store reads it */
  protected constructor(
    readonly server: Server,
    private readonly now: string,
  ) {}

  /** Makes a store. Default of its options: the address of the server. */
  protected abstract make(options?: Options): SqlStore;

  /** Runs statements as the administrator in the database of the locks, and resolves with the rows of the last one. */
  abstract query(statements: string): Promise<readonly SqlRow[]>;

  /** Connections of the lock user. */
  abstract connections(): Promise<readonly number[]>;

  /** Connections in which an acquire of an exclusive lock is under way. */
  abstract acquires(): Promise<readonly number[]>;

  /** Number of statements that wait for a row that another transaction has locked. */
  abstract blocked(): Promise<number>;

  /** A store as another process would have it. */
  store(options?: Options): SqlStore {
    const store = this.make(options);
    this.track({ [Symbol.asyncDispose]: () => store.close() });
    return store;
  }

  /** A lock service as another process would have it. */
  open(options?: StoreLocksOptions, storeOptions?: Options): OpenLocksOn {
    const service = openLocksOn(this.make(storeOptions), options);
    this.services.add(service);
    return this.track(service);
  }

  /** Resolves when no service rehearses: that would wait for a transaction of another user, or be in its deadlock. */
  async started(): Promise<void> {
    await Promise.allSettled([...this.services].map(({ manager }) => manager.open()));
  }

  async proxy(): Promise<TcpProxy> {
    return this.track(await TcpProxy.start(this.server));
  }

  /** Address of the lock user behind a proxy. */
  uriThrough(proxy: TcpProxy): string {
    const { uri, host, port } = this.server;
    return uri.replace(`@${host}:${port}/`, `@${proxy.host}:${proxy.port}/`);
  }

  /** Whether a lock of the key is held. */
  async isHeld(key: string): Promise<boolean> {
    return (await this.holds(`name = '${rowName(key)}'`)).length > 0;
  }

  /** Resolves when this number of processes waits for a key. */
  async waiting(key: string, processes = 1): Promise<void> {
    const queueLength = async (): Promise<number> => {
      const [row] = await this.query(
        `SELECT length(queue) AS n FROM nest_lock WHERE name = '${rowName(key)}' AND member = ''`,
      );
      return Number(row?.['n'] ?? 0) / ',0123456789ab'.length;
    };
    await until(async () => (await queueLength()) === processes, {
      what: `${processes} processes wait for ${key}`,
    });
  }

  /** Resolves when the services and the table keep nothing. */
  async nothingLeft(...services: readonly OpenLocksOn[]): Promise<void> {
    for (const { locks } of services) {
      await until(() => Object.values(locks.usage).every((size) => size === 0), {
        what: 'the service keeps nothing',
      });
    }
    await until(async () => (await this.holds()).length === 0, { what: 'no lock is held' });
  }

  /** A transaction of another user that has run a statement. It is rolled back in the end. */
  async transaction(statement: string): Promise<ForeignTransaction> {
    await this.started();
    const connection = await this.server.adminConnection('app');
    await connection.query(`BEGIN; ${statement}`);
    return this.track({
      query: (further) => connection.query(further),
      [Symbol.asyncDispose]: () => connection.end().catch(() => undefined),
    });
  }

  /** A transaction of another user, which has the rows of keys locked until it ends. */
  foreignTransaction(...locked: readonly string[]): Promise<ForeignTransaction> {
    const names = locked.map((key) => `'${rowName(key)}'`).join(', ');
    return this.transaction(`SELECT * FROM nest_lock WHERE name IN (${names}) FOR UPDATE`);
  }

  /** Releases keys of each kind, and in each way, for which a process waits that has crashed. */
  async releaseBeforeDeadWaiters(locks: LockService): Promise<void> {
    for (const key of WAITED_FOR) {
      const lease = (await tryAcquire(locks, key))!;
      await this.query(
        `UPDATE nest_lock SET queue = ',0123456789ab' WHERE name = '${rowName(key)}' AND member = ''`,
      );
      if (key.endsWith('forced')) await locks.forceUnlock(key);
      else await lease.release();
    }
  }

  /** Resolves when the released keys can be acquired. `inspect` shows no holder before. */
  async allFree(locks: LockService): Promise<void> {
    for (const key of WAITED_FOR) {
      const [seen, lease] = [await locks.inspect(key), await tryAcquire(locks, key)];
      if (seen !== null || lease === null) throw new Error(`${key} is not free: ${JSON.stringify(seen)}`);
    }
  }

  /** Ends `one` with the test. */
  track<T extends AsyncDisposable>(one: T): T {
    this.opened.push(one);
    return one;
  }

  /** Ends what the last test opened, newest first, and empties the table. */
  async reset(): Promise<void> {
    await this.closeAll();
    await this.query('DELETE FROM nest_lock');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAll();
    await this.server.stop();
  }

  protected async closeAll(): Promise<void> {
    this.services.clear();
    for (const one of this.opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }

  private holds(where = 'true'): Promise<readonly SqlRow[]> {
    return this.query(`SELECT name FROM nest_lock WHERE owner <> '' AND until > ${this.now} AND ${where}`);
  }
}
