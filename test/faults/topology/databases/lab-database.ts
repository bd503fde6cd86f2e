import { until } from '../../../support/async.js';
import type { ForeignTransaction } from '../../../support/foreign-transaction.js';
import type { SqlLab, SqlServer } from '../../../support/sql/sql-lab.js';
import type { Database, Probe, Row } from '../database.js';
import { AdminLine, type AdminConnection } from './admin-line.js';
import type { FaultyEquipment } from './equipment.js';

/** A server that has crashed first cleans up, and may end only then. */
const SERVES_WITHIN_MS = 20_000;

/** What MariaDB says when it cannot write its log. It serves for a moment still, and ends. */
const SAYS_ITS_END = /\[FATAL\]/;

/** What a server needs so that faults can be done to it. */
interface FaultyServer extends SqlServer {
  readonly isRunning: boolean;
  readonly said: string;
  restart(): Promise<void>;
}

/** What databases have in common, as faults know them. */
export abstract class LabDatabase<S extends FaultyServer> implements Omit<
  Database,
  'shape' | 'requests' | 'subscribes' | 'kill' | 'end' | 'stop' | 'goOn'
> {
  private readonly admin: AdminLine;

  constructor(
    protected readonly lab: SqlLab<S>,
    private readonly equipment: FaultyEquipment,
    private readonly connect: () => Promise<AdminConnection>,
  ) {
    this.admin = new AdminLine(connect);
  }

  abstract connections(): Promise<readonly number[]>;
  abstract endConnection(id: number): Promise<void>;
  abstract cancel(id: number): Promise<void>;
  abstract setReadOnly(isReadOnly: boolean): Promise<void>;
  abstract setFull(isFull: boolean): Promise<void>;
  abstract holds(): Promise<readonly { readonly key: string; readonly owner: string }[]>;

  get target(): S {
    return this.lab.server;
  }

  get isRunning(): boolean {
    return this.lab.server.isRunning;
  }

  get disk() {
    return this.equipment.disk;
  }

  startAgain(): Promise<void> {
    return this.lab.server.restart();
  }

  /** Starts the server again when it has ended, or is about to. */
  async served(): Promise<void> {
    const serves = async (): Promise<boolean> => {
      if (!this.isRunning) await this.startAgain().catch(() => undefined);
      const answers = (await this.query('SELECT 1').catch(() => [])).length > 0;
      return answers && !SAYS_ITS_END.test(this.lab.server.said);
    };
    await until(serves, { what: 'the database serves', timeoutMs: SERVES_WITHIN_MS });
  }

  query(statements: string): Promise<readonly Row[]> {
    return this.admin.query(statements);
  }

  transaction(statement: string): Promise<ForeignTransaction> {
    return this.lab.transaction(statement);
  }

  async probe(): Promise<Probe> {
    const { query, close } = await this.connect();
    return { ask: async () => void (await query('SELECT 1')), close };
  }

  jump(ms: number): void {
    this.equipment.jump(ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.admin.close();
    await this.lab[Symbol.asyncDispose]();
  }
}
