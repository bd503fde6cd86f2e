import { cleanError, secretsOfClient } from './clean-error.js';
import type { RedisLike } from './redis-client.js';
import { isReplyError } from './redis-failure.js';

/** The last error of a client's connection, for the failures of later requests. */
export class ClientErrors {
  /** ECMAScript-private: the client knows the password. */
  readonly #client: RedisLike;
  /** Error with everything that the client put into it; cleaned before a caller gets it. */
  #last: unknown;
  /** Whether the client itself has reported an error of its current connection. */
  private hasSaid = false;

  constructor(client: RedisLike) {
    this.#client = client;
    client.on('connect', () => (this.hasSaid = false));
    client.on('error', (error: unknown) => {
      this.#last = error;
      this.hasSaid = true;
    });
  }

  /** Last error, cleaned; undefined while no error is known. */
  get last(): Error | undefined {
    return this.#last === undefined ? undefined : this.clean(this.#last);
  }

  /** Records why the connection fails, or that it works. A reason from the client itself (a wrong password) stays. */
  note(error: unknown): void {
    if (!this.hasSaid) this.#last = error;
  }

  /** Records why the client cannot connect, unless a reason is known already. */
  noteIfUnknown(error: unknown): void {
    this.#last ??= error;
  }

  /** Returns the error of a rejected command: the server's reply, else the socket's error, which ioredis omits. */
  readonly explained = (error: unknown): Error =>
    (isReplyError(error) ? undefined : this.last) ?? this.clean(error);

  readonly clean = (error: unknown): Error => cleanError(error, secretsOfClient(this.#client));
}
