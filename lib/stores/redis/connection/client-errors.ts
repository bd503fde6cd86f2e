import { cleanError, secretsOfClient } from './clean-error.js';
import type { RedisLike } from './redis-client.js';
import { isReplyError } from './redis-failure.js';

/** What went wrong with a client's connection: for whoever asks for something meanwhile. */
export class ClientErrors {
  /** Private to the language: it knows the password. */
  readonly #client: RedisLike;
  /** The error as the client made it, with all that it put into it; cleaned before a caller gets it. */
  #last: unknown;
  /** The client has said what is wrong with the connection that it has now. */
  private hasSaid = false;

  constructor(client: RedisLike) {
    this.#client = client;
    client.on('connect', () => (this.hasSaid = false));
    client.on('error', (error: unknown) => {
      this.#last = error;
      this.hasSaid = true;
    });
  }

  /** Undefined where nothing is known to be wrong. */
  get last(): Error | undefined {
    return this.#last === undefined ? undefined : this.clean(this.#last);
  }

  /** The connection works, or fails for this reason, unless the client has said why, as for a wrong password. */
  note(error: unknown): void {
    if (!this.hasSaid) this.#last = error;
  }

  /** The client cannot connect. Why, it may have said already. */
  noteIfUnknown(error: unknown): void {
    this.#last ??= error;
  }

  /** ioredis rejects commands in terms of its settings; the socket's own error says what ended the connection. */
  readonly explained = (error: unknown): Error =>
    (isReplyError(error) ? undefined : this.last) ?? this.clean(error);

  readonly clean = (error: unknown): Error => cleanError(error, secretsOfClient(this.#client));
}
