/** Codes that a connection may begin with, instead of a protocol version. */
const SSL_REQUEST = 80_877_103;
const GSS_REQUEST = 80_877_104;

const LENGTH_BYTES = 4;

/** One request of a PostgreSQL client, with its messages as they came. */
export type Request =
  | { readonly type: 'startup' | 'query'; readonly messages: readonly Buffer[] }
  | { readonly type: 'encryption' }
  | { readonly type: 'terminate' };

/**
 * Splits the bytes of a connection into requests, from the first message to the Query or Sync that ends it. A request
 * has to stay whole, because its messages (Parse, Bind, Execute …) refer to each other.
 */
export class RequestReader {
  private bytes = Buffer.alloc(0);
  private messages: Buffer[] = [];
  private started = false;

  push(chunk: Buffer): Request[] {
    this.bytes = Buffer.concat([this.bytes, chunk]);
    const requests: Request[] = [];
    for (let message = this.next(); message; message = this.next()) {
      const request = this.started ? this.collect(message) : this.begin(message);
      if (request) requests.push(request);
    }
    return requests;
  }

  /** Returns the next complete message. Messages up to the start-up have no byte for their type. */
  private next(): Buffer | undefined {
    const typeBytes = this.started ? 1 : 0;
    if (this.bytes.length < typeBytes + LENGTH_BYTES) return undefined;
    const length = typeBytes + this.bytes.readInt32BE(typeBytes);
    if (this.bytes.length < length) return undefined;
    const message = this.bytes.subarray(0, length);
    this.bytes = this.bytes.subarray(length);
    return message;
  }

  private begin(message: Buffer): Request {
    const code = message.readInt32BE(LENGTH_BYTES);
    if (code === SSL_REQUEST || code === GSS_REQUEST) return { type: 'encryption' };
    this.started = true;
    return { type: 'startup', messages: [message] };
  }

  private collect(message: Buffer): Request | undefined {
    const type = String.fromCharCode(message[0] ?? 0);
    if (type === 'X') return { type: 'terminate' };
    this.messages.push(message);
    if (type !== 'Q' && type !== 'S') return undefined;
    const { messages } = this;
    this.messages = [];
    return { type: 'query', messages };
  }
}
