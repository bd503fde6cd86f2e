import type { RedisLike } from '../redis-client.js';

/** Errors of ioredis for a sentinel that does not name the master. */
const TROUBLE = /sentinel (\S+) (?:because (.*)|successfully)/s;

/** Remembers which sentinels did not name the master to a client since its last connection. */
export class SilentSentinels {
  private readonly reasons = new Map<string, string>();

  constructor(client: RedisLike, clean: (error: unknown) => Error) {
    client.on('sentinelError', (error) => {
      const [, address, reason] = TROUBLE.exec(clean(error).message) ?? [];
      if (address !== undefined) this.reasons.set(address, reason ?? 'does not know the master');
    });
    client.on('connect', () => this.reasons.clear());
  }

  /** End of a message; empty when each sentinel that was asked has replied. */
  get text(): string {
    if (this.reasons.size === 0) return '';
    const list = [...this.reasons].map(([address, reason]) => `${address} (${reason})`).join(', ');
    return `; sentinels that did not name the master: ${list}`;
  }
}
