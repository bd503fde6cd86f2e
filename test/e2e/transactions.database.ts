import { randomUUID } from 'node:crypto';
import { PGlite } from '@electric-sql/pglite';
import type { TransactionalAdapter } from '@nestjs-cls/transactional';
import { Pool, type PoolClient } from 'pg';
import { PgliteServer } from '../../sample-app/src/demo/postgres/pglite-server.js';

/** What statements are sent to: the running transaction's connection, or any. */
export type Queryable = Pick<Pool, 'query'>;

export type PgAdapter = TransactionalAdapter<Pool, Queryable, unknown>;

/**
 * A PostgreSQL database with tables of one test: that of `DATABASE_URL`, or an embedded one.
 *
 * The embedded one has a single backend, so nothing runs beside an open transaction. There, a transaction commits in
 * two phases (`PREPARE TRANSACTION`, then `COMMIT PREPARED`): between them it is as uncommitted for the others as
 * any open transaction, and they can run.
 */
export class TransactionDatabase implements AsyncDisposable {
  private constructor(
    readonly pool: Pool,
    private readonly twoPhase: boolean,
    private readonly schema: string,
    private readonly stopServer: () => Promise<void>,
  ) {}

  static async start(): Promise<TransactionDatabase> {
    const given = process.env['DATABASE_URL'];
    const embedded = given ? undefined : await startEmbedded();
    const schema = `nest_redis_lock_${randomUUID().replaceAll('-', '')}`;
    const pool = new Pool({
      connectionString: given ?? embedded!.url,
      options: given ? `-c search_path=${schema}` : undefined,
      max: 4,
    });
    const stop = embedded?.stop ?? (() => Promise.resolve());
    await pool.query(`CREATE SCHEMA ${schema}`);
    // The embedded server has one session for all connections, so this holds for each of them.
    if (embedded) await pool.query(`SET search_path TO ${schema}`);
    return new TransactionDatabase(pool, embedded !== undefined, schema, stop);
  }

  /** For `@Transactional()`. `beforeCommit` runs when a transaction has done its work and is not visible yet. */
  adapter(beforeCommit: () => Promise<void>): PgAdapter {
    return {
      connection: this.pool,
      optionsFactory: (pool) => ({
        getFallbackInstance: () => pool,
        wrapWithTransaction: async (_options, work, setTransaction) => {
          const client = await pool.connect();
          try {
            await client.query('BEGIN');
            setTransaction(client);
            const result: unknown = await work();
            await this.commit(client, beforeCommit);
            return result;
          } catch (error) {
            await client.query('ROLLBACK');
            throw error;
          } finally {
            client.release();
          }
        },
      }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.query(`DROP SCHEMA ${this.schema} CASCADE`);
    await this.pool.end();
    await this.stopServer();
  }

  private async commit(client: PoolClient, beforeCommit: () => Promise<void>): Promise<void> {
    if (!this.twoPhase) {
      await beforeCommit();
      await client.query('COMMIT');
      return;
    }
    const id = randomUUID();
    await client.query(`PREPARE TRANSACTION '${id}'`);
    await beforeCommit();
    await client.query(`COMMIT PREPARED '${id}'`);
  }
}

const startEmbedded = async (): Promise<{ url: string; stop: () => Promise<void> }> => {
  const database = await PGlite.create({
    startParams: [...PGlite.defaultStartParams, '-c', 'max_prepared_transactions=8'],
  });
  const server = new PgliteServer(database);
  const port = await server.listen();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      await server.close();
      await database.close();
    },
  };
};
