/** An error reply of a server. */
export class ErrorReply {
  constructor(readonly message: string) {}
}

/** A value that a server sends, in RESP2. Strings are bytes, one for each character (latin1). */
export type RespValue = string | number | null | ErrorReply | readonly RespValue[];

/** Returns the bytes of a command. */
export const encode = (words: readonly (string | number)[], encoding: BufferEncoding = 'utf8'): Buffer => {
  const parts: (string | Buffer)[] = [`*${words.length}\r\n`];
  for (const word of words) {
    const bytes = Buffer.from(String(word), encoding);
    parts.push(`$${bytes.length}\r\n`, bytes, '\r\n');
  }
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
};

/** Reads whole values from the bytes of one connection; keeps the bytes of one that is not complete. */
export class RespReader {
  private text = '';
  private at = 0;

  /** Takes in more bytes, and returns the values that are complete now. */
  read(bytes: string): RespValue[] {
    this.text = this.text.slice(this.at) + bytes;
    this.at = 0;
    const values: RespValue[] = [];
    for (;;) {
      const from = this.at;
      const value = this.next();
      if (value === undefined) {
        this.at = from;
        return values;
      }
      values.push(value);
    }
  }

  private next(): RespValue | undefined {
    const end = this.text.indexOf('\r\n', this.at);
    if (end < 0) return undefined;
    const type = this.text[this.at];
    const line = this.text.slice(this.at + 1, end);
    this.at = end + 2;
    switch (type) {
      case '+':
        return line;
      case '-':
        return new ErrorReply(line);
      case ':':
        return Number(line);
      case '$':
        return this.bulk(Number(line));
      case '*':
        return this.list(Number(line));
      default:
        throw new Error(`no value of RESP2 begins with ${JSON.stringify(type)}`);
    }
  }

  private bulk(length: number): string | null | undefined {
    if (length < 0) return null;
    if (this.text.length < this.at + length + 2) return undefined;
    const value = this.text.slice(this.at, this.at + length);
    this.at += length + 2;
    return value;
  }

  private list(length: number): readonly RespValue[] | null | undefined {
    if (length < 0) return null;
    const values: RespValue[] = [];
    for (let i = 0; i < length; i++) {
      const value = this.next();
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }
}
