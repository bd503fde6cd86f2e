import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';

const OCCUPANT = 0;
const SECTIONS = 1;
const TOKEN = 2;
const FIELDS = 3;

/**
 * The resource that the lock protects: across processes a small file that is read and written in place. For a single
 * process memory is enough; a file would cost more than the lock. The register detects every overlap of two sections:
 * the second section finds the first one inside, or one of them finds a changed register at its end.
 * It also checks that fencing tokens grow.
 */
export class Register {
  private readonly file: number | undefined;
  private readonly fields = new Float64Array(FIELDS);
  private sectionsAtEntry = 0;
  /** Sections that were not alone. */
  overlaps = 0;
  /** Sections that came with a token no greater than an earlier one. */
  staleTokens = 0;

  /** Makes an empty register. */
  static create(path: string): void {
    writeFileSync(path, new Float64Array(FIELDS));
  }

  /**
   * @param path undefined where only this process uses it
   * @param id a number for the process that uses it, unique and not 0
   */
  constructor(
    path: string | undefined,
    private readonly id: number,
  ) {
    this.file = path === undefined ? undefined : openSync(path, 'r+');
  }

  enter(token: number | undefined): void {
    const { fields } = this;
    this.read();
    if (fields[OCCUPANT] !== 0) this.overlaps++;
    if (token !== undefined && token <= fields[TOKEN]!) this.staleTokens++;
    fields[OCCUPANT] = this.id;
    fields[TOKEN] = token ?? 0;
    this.sectionsAtEntry = fields[SECTIONS]!;
    this.write();
  }

  leave(): void {
    const { fields } = this;
    this.read();
    if (fields[OCCUPANT] !== this.id || fields[SECTIONS] !== this.sectionsAtEntry) this.overlaps++;
    fields[OCCUPANT] = 0;
    fields[SECTIONS] = this.sectionsAtEntry + 1;
    this.write();
  }

  close(): void {
    if (this.file !== undefined) closeSync(this.file);
  }

  private read(): void {
    if (this.file !== undefined) readSync(this.file, this.fields, 0, this.fields.byteLength, 0);
  }

  private write(): void {
    if (this.file !== undefined) writeSync(this.file, this.fields, 0, this.fields.byteLength, 0);
  }
}
