import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';

/** Who reads or writes, and by what right. */
export interface Visitor {
  readonly process: SimProcess;
  readonly lease: string;
  readonly token: number;
}

interface Row {
  fence: number;
  version: number;
}

/**
 * What the locks protect: a row for each key, which refuses tokens below the greatest it has seen
 * (`WHERE fence <= token`), whether somebody reads or writes. It is in nobody's process, never fails, and writes
 * down all that it is asked.
 */
export class SimRegister {
  private readonly rows = new Map<string, Row>();

  constructor(
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    private readonly random: Random,
  ) {}

  /** The version of the row; undefined when the token is stale. */
  read(key: string, visitor: Visitor): Promise<number | undefined> {
    return this.visit(visitor, 0, () => {
      const row = this.row(key);
      const accepted = this.admit(row, visitor.token);
      this.write('read', key, visitor, accepted, row.version);
      return accepted ? row.version : undefined;
    });
  }

  /** Writes on top of a version that was read before; `slowMs`: how long the write is on its way. False: stale. */
  update(key: string, base: number, visitor: Visitor, slowMs: number): Promise<boolean> {
    return this.visit(visitor, slowMs, () => {
      const row = this.row(key);
      const accepted = this.admit(row, visitor.token);
      if (accepted) row.version++;
      this.write('write', key, visitor, accepted, row.version, base);
      return accepted;
    });
  }

  private visit<T>({ process }: Visitor, slowMs: number, work: () => T): Promise<T> {
    return new Promise((resolve) => {
      process.effect(() => {
        this.agenda.quietly(this.agenda.now + slowMs + this.random.between(0.1, 2), () => {
          const result = work();
          this.agenda.at(this.agenda.now + this.random.between(0.1, 2), () => {
            process.arrive(() => resolve(result));
          });
        });
      });
    });
  }

  private row(key: string): Row {
    let row = this.rows.get(key);
    if (!row) this.rows.set(key, (row = { fence: -Infinity, version: 0 }));
    return row;
  }

  private admit(row: Row, token: number): boolean {
    if (token < row.fence) return false;
    row.fence = token;
    return true;
  }

  private write(
    what: 'read' | 'write',
    key: string,
    { lease, token }: Visitor,
    accepted: boolean,
    version: number,
    base?: number,
  ): void {
    this.chronicle.add({
      type: 'register',
      at: this.agenda.now,
      what,
      key,
      lease,
      token,
      accepted,
      base,
      version,
    });
  }
}
