/** Bytes from a server that are no message of its protocol. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Length of a text or of bytes that are absent. */
const ABSENT = -1;

/** Writes values as ZooKeeper encodes them: numbers with the highest byte first, texts and lists behind their length. */
export class JuteWriter {
  private readonly parts: Buffer[] = [];

  int(value: number): this {
    const bytes = Buffer.allocUnsafe(4);
    bytes.writeInt32BE(value);
    return this.raw(bytes);
  }

  long(value: bigint): this {
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigInt64BE(value);
    return this.raw(bytes);
  }

  bool(value: boolean): this {
    return this.raw(Buffer.from([value ? 1 : 0]));
  }

  bytes(value: Buffer): this {
    return this.int(value.length).raw(value);
  }

  text(value: string): this {
    return this.bytes(Buffer.from(value));
  }

  list<T>(values: readonly T[], write: (value: T) => void): this {
    this.int(values.length);
    values.forEach(write);
    return this;
  }

  /** Returns what was written, behind its length. */
  frame(): Buffer {
    const length = this.parts.reduce((sum, part) => sum + part.length, 0);
    return Buffer.concat([new JuteWriter().int(length).parts[0]!, ...this.parts]);
  }

  private raw(bytes: Buffer): this {
    this.parts.push(bytes);
    return this;
  }
}

/** Reads what {@link JuteWriter} writes. Throws a {@link ProtocolError} for anything else; it never reads past the end. */
export class JuteReader {
  private at = 0;

  constructor(private readonly source: Buffer) {}

  int(): number {
    return this.take(4).readInt32BE();
  }

  long(): bigint {
    return this.take(8).readBigInt64BE();
  }

  bool(): boolean {
    return this.take(1)[0] !== 0;
  }

  bytes(): Buffer {
    const length = this.int();
    return length === ABSENT ? Buffer.alloc(0) : this.take(length);
  }

  text(): string {
    return this.bytes().toString();
  }

  list<T>(read: () => T): T[] {
    const count = this.int();
    // Each value takes a byte at least: a count that cannot be true must cost no memory.
    if (count > this.source.length - this.at)
      throw new ProtocolError(`a list of ${count} values does not fit`);
    return Array.from({ length: Math.max(0, count) }, read);
  }

  /** Whether all has been read. */
  get isAtEnd(): boolean {
    return this.at === this.source.length;
  }

  private take(length: number): Buffer {
    const end = this.at + length;
    if (length < 0 || end > this.source.length) throw new ProtocolError(`${length} bytes are missing`);
    const taken = this.source.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}
