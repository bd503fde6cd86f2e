import { Inject, Injectable } from '@nestjs/common';
import { sharedByBuilds } from '../../core/util/both-builds.js';
import { LockError } from '../../core/errors/lock.errors.js';
import { invalidOption } from '../../core/settings/option-checks.js';
import type { Candidates } from '../leader/candidates.js';
import { LockService } from '../service/lock.service.js';

/** What a health check reports about the locks. It has no address of the store, and no key but those of `leads`. */
export type LockHealth = {
  /** `up` when the store replies. */
  readonly status: 'up' | 'down';
  /** Number of locks and permits that this service holds. */
  readonly holds: number;
  /** Labels of what this process leads; only if it is a candidate for something. */
  readonly leads?: readonly string[];
  /** Time until the reply of the store in ms; only with `up`. */
  readonly pingMs?: number;
  /** Code of the error, such as `LOCK_STORE_FAILED`; only with `down`. */
  readonly code?: string;
  /** What is wrong, in words; only with `down`. */
  readonly message?: string;
};

/** Error that Terminus 10 and 11 recognize by its properties. */
class LockHealthError extends Error {
  readonly isHealthCheckError = true;

  constructor(readonly causes: Record<string, LockHealth>) {
    super('The store of the locks does not work.');
  }
}

@Injectable()
class LockHealthIndicator {
  /**
   * Injected by Nest. For a module with a name, create one by hand:
   * `new LockHealthIndicator(app.get(getLockServiceToken('billing')))`.
   */
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  /**
   * Asks the store for a reply. Resolves with the status under `key`, also when the store fails. Terminus 11 and 12
   * reply 503 for `down`. Terminus 10 does so only for {@link checkOrThrow}.
   *
   * @param key name in the reply of the health check. Default: `locks`
   * @throws LockConfigurationError for a key that is no text
   *
   * @example health.check([() => lockHealth.check()]) // { locks: { status: 'up', holds: 2, pingMs: 1 } }
   */
  async check<Key extends string = 'locks'>(key?: Key): Promise<Record<Key, LockHealth>> {
    const name: unknown = key === undefined ? 'locks' : key;
    if (typeof name !== 'string' || name === '') invalidOption('key', 'a text that is not empty', name);
    return { [name as string]: await this.health() } as Record<Key, LockHealth>;
  }

  /**
   * Like {@link check}, but rejects when the store fails, with an error that Terminus 10 and 11 know. Terminus 12 knows
   * no such errors: use `check` there.
   *
   * @example health.check([() => lockHealth.checkOrThrow()]) // Terminus 10
   */
  async checkOrThrow<Key extends string = 'locks'>(key?: Key): Promise<Record<Key, LockHealth>> {
    const result = await this.check(key);
    if (Object.values<LockHealth>(result).some(({ status }) => status === 'down'))
      throw new LockHealthError(result);
    return result;
  }

  private async health(): Promise<LockHealth> {
    const startedAt = performance.now();
    try {
      await this.locks.ping();
      const pingMs = Math.round(performance.now() - startedAt);
      return { status: 'up', ...this.held(), pingMs };
    } catch (error) {
      // Without the text of the error, which may have an address: the replies of health checks are often public.
      const code = error instanceof LockError ? error.code : 'error';
      const message = 'The store of the locks does not work. The log has the reason.';
      return { status: 'down', ...this.held(), code, message };
    }
  }

  private held(): Pick<LockHealth, 'holds' | 'leads'> {
    // A mock of the service has none.
    const leads = (this.locks.candidates as Candidates | undefined)?.leads;
    return { holds: this.locks.held().length, ...(leads && { leads }) };
  }
}

/**
 * Health indicator for `@nestjs/terminus` 10, 11 and 12, which the library does not import. `RedisLockModule` provides
 * it for the service without a name.
 *
 * @example
 * `@HealthCheck()` `@Get()`
 * check() {
 *   return this.health.check([() => this.lockHealth.check()]);
 * }
 */
const shared = sharedByBuilds('LockHealthIndicator', LockHealthIndicator);
type shared = LockHealthIndicator;
export { shared as LockHealthIndicator };
