import type { Runtime } from '../../core/util/runtime.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { printsOnly } from '../../core/util/printing.js';
import { EXPIRING } from '../../core/seam/lease-model.js';
import type { ListedKey, ListReply, ListRequest } from '../../core/seam/listing.js';
import type { LockStore, StoreHost } from '../../core/seam/lock-store.js';
import { heldState, type KeyState, type PermitState } from '../../core/seam/reply.js';
import { firstOnPage, foundAt, invalidCursor, keyPage, PAGE_KEYS } from '../key-pages.js';
import { checkSqlKey } from './sql-terms.js';
import type { RunStatement, SqlDialect } from './sql-dialect.js';
import { SqlKind } from './sql-kind.js';
import { SqlLanes } from './sql-lanes.js';
import { isRefused } from './sql.js';
import { isNote, SqlNotes } from './sql-notes.js';
import { Sweeper } from './sweeper.js';

/** Options of a store on a database that all databases have in common, with their defaults. */
export interface SqlStoreSettings {
  readonly runtime: Runtime;
  readonly commandTimeoutMs: number;
  readonly lanes: number;
  readonly migratesOnStart: boolean;
  /** See {@link LockStore.place}. */
  readonly place: string;
}

/** Keeps locks in rows of a table, with the clock of the database. */
export class SqlStore implements LockStore {
  readonly lease = EXPIRING;
  readonly name: string;
  readonly place: string;
  readonly commandTimeoutMs: number;
  readonly kinds: { readonly exclusive: SqlKind<'exclusive'>; readonly permit: SqlKind<'permit'> };
  readonly processes: SqlNotes;
  private readonly lanes: SqlLanes;
  private readonly sweeper: Sweeper;
  private migrating: Promise<void> | undefined;

  /** @internal The stores of databases extend this class. */
  constructor(
    private readonly dialect: SqlDialect,
    private readonly settings: SqlStoreSettings,
  ) {
    const { runtime, commandTimeoutMs: timeoutMs } = settings;
    this.name = dialect.name;
    this.place = `${dialect.name} ${settings.place}`;
    this.commandTimeoutMs = timeoutMs;
    const ready = settings.migratesOnStart ? () => this.migrated() : undefined;
    this.lanes = new SqlLanes(dialect, { runtime, timeoutMs }, settings.lanes, ready);
    this.sweeper = new Sweeper(runtime, () => dialect.sweep((statement) => this.lanes.look(statement)));
    this.kinds = {
      exclusive: new SqlKind(runtime, this.lanes, dialect, dialect.exclusive),
      permit: new SqlKind(runtime, this.lanes, dialect, dialect.permit),
    };
    this.processes = new SqlNotes((statement) => this.lanes.look(statement), dialect.notes);
  }

  /**
   * Checks the server, the table and the rights; with `migrate: 'on start'` creates the table before.
   *
   * @throws {LockConfigurationError} when locks cannot work, with the statement to run
   */
  async open(host: StoreHost): Promise<void> {
    const { dialect, lanes, settings } = this;
    dialect.storeHost = host;
    const look: RunStatement = (statement) => lanes.look(statement);
    await (settings.migratesOnStart ? this.migrated() : dialect.checkServer(look).catch(asConfiguration));
    const warnings = await lanes.apart((alone) => dialect.check(look, alone)).catch(asConfiguration);
    for (const warning of warnings) host.warn(warning);
    this.sweeper.start();
  }

  /** Creates the table if it is missing, and never changes an existing one. Needs the right to do so. */
  async migrate(): Promise<void> {
    const { dialect } = this;
    const migrate = async (run: RunStatement): Promise<void> => {
      await dialect.checkServer(run);
      await dialect.migrate(run);
    };
    await this.lanes.apart(migrate).catch(asConfiguration);
  }

  /** Migrates once, before the first connection of a lane: a request may come before the app has started. */
  private migrated(): Promise<void> {
    return (this.migrating ??= this.migrate().catch((error: unknown) => {
      this.migrating = undefined;
      throw error;
    }));
  }

  checkKey(finalKey: string): void {
    checkSqlKey(finalKey);
  }

  async inspect(finalKey: string): Promise<KeyState | null> {
    return heldState(await this.lanes.about(finalKey, this.dialect.inspect(finalKey)));
  }

  /** The name of a key with more than 500 bytes is its digest, and does not have the prefix. */
  async list(request: ListRequest): Promise<ListReply> {
    const first = firstOnPage(request);
    // A database cannot store a NUL, so no page begins with one.
    if (first.includes('\0'))
      return request.cursor === undefined ? { keys: [], cursor: undefined } : invalidCursor();
    const rows = await this.lanes.look(this.dialect.keysFrom(first, PAGE_KEYS + 1));
    const names = rows.map(({ name }) => name);
    const { page, cursor } = keyPage(names, request);
    const live = page.filter((_, i) => rows[i]!.isLive);
    // One after the other: an unsent statement has one time-out from its request.
    const look = async (finalKey: string): Promise<ListedKey | null> => {
      const state = await this.lanes.look(this.dialect.inspect(finalKey));
      return state && { finalKey, state };
    };
    return { keys: await foundAt(live, look, 1), cursor };
  }

  permits(finalKey: string): Promise<PermitState | null> {
    return this.lanes.about(finalKey, this.dialect.permits(finalKey));
  }

  async forceUnlock(finalKey: string): Promise<boolean> {
    if (isNote(finalKey)) return false;
    return this.lanes.about(finalKey, this.dialect.forceUnlock(finalKey), { urgency: 'woken' });
  }

  ping(): Promise<void> {
    return this.lanes.look(this.dialect.ping());
  }

  async close(): Promise<void> {
    this.sweeper.stop();
    for (const kind of Object.values(this.kinds)) kind.close();
    await this.lanes.close();
    this.dialect.close();
  }
}

printsOnly(SqlStore, ({ place }) => ({ place }));

/** What the server refuses at the start, it refuses later, too. */
const asConfiguration = (failure: unknown): never => {
  if (!isRefused(failure)) throw failure;
  throw new LockConfigurationError(
    `A statement that locks need is refused: ${failure.message}. Change what the server names, then start again.`,
    { cause: failure },
  );
};
