/** Bytes from a server that are no message of its protocol. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';

  constructor(found: string) {
    super(`the server does not speak ZooKeeper's protocol: ${found}`);
  }
}

/** Length of a text or of bytes that are absent. */
const ABSENT = -1;

/** Bytes that a writer has room for at first: most requests are shorter. */
const FIRST_ROOM = 256;
/** Bytes of the length before a frame. */
const LENGTH = 4;

/** Writes values as ZooKeeper encodes them: numbers with the highest byte first, texts and lists behind their length. */
export class JuteWriter {
  private room = Buffer.allocUnsafe(FIRST_ROOM);
  private end = LENGTH;

  int(value: number): this {
    const at = this.take(4);
    this.room.writeInt32BE(value, at);
    return this;
  }

  long(value: bigint): this {
    const at = this.take(8);
    this.room.writeBigInt64BE(value, at);
    return this;
  }

  bool(value: boolean): this {
    const at = this.take(1);
    this.room[at] = value ? 1 : 0;
    return this;
  }

  bytes(value: Uint8Array): this {
    this.int(value.length);
    const at = this.take(value.length);
    this.room.set(value, at);
    return this;
  }

  text(value: string): this {
    const length = Buffer.byteLength(value);
    this.int(length);
    const at = this.take(length);
    this.room.write(value, at);
    return this;
  }

  list<T>(values: readonly T[], write: (value: T) => void): this {
    this.int(values.length);
    values.forEach(write);
    return this;
  }

  /** Returns what was written, behind its length. */
  frame(): Buffer {
    this.room.writeInt32BE(this.end - LENGTH, 0);
    return this.room.subarray(0, this.end);
  }

  /** Makes room for a number of bytes, and returns where they begin. */
  private take(length: number): number {
    const at = this.end;
    this.end += length;
    if (this.end > this.room.length) {
      const larger = Buffer.allocUnsafe(2 * this.end);
      larger.set(this.room.subarray(0, at));
      this.room = larger;
    }
    return at;
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
