import { Logger } from '@nestjs/common';
import { isTaken, type LockError, type LockErrorCode } from '../core/errors/lock.errors.js';
import { clientPlaceholderOf } from './lock-error-mapping.js';

/** Codes of programming errors: the client's message names no cause, and Nest does not log HTTP exceptions. */
const MISTAKES: ReadonlySet<LockErrorCode> = new Set([
  'LOCK_KEY_INVALID',
  'LOCK_CONFIGURATION',
  'LOCK_NOT_REENTRANT',
]);

/** More places than an app has methods: the set stays bounded, and nothing is logged twice. */
const MAX_PLACES = 1_000;

/** Logs programming errors, most of them once for each place and code. Mistakes of clients are in the debug log only. */
export class MistakeLog {
  private readonly reported = new Set<string>();
  private readonly logger = new Logger('RedisLockModule');

  /**
   * Logs the error if it is a programming error, or at the level debug if the client made it.
   *
   * @param where the method or route, never text that differs from call to call
   */
  notify(error: LockError, where: string): void {
    const { code } = error;
    // Each of them: the call may have waited for itself, and its client got "taken".
    if (isTaken(error) && error.heldAround) {
      return this.logger.error(`${where} failed with ${code}: ${error.message}`, error.stack);
    }
    if (!MISTAKES.has(code)) return;
    if (clientPlaceholderOf(error) !== undefined) {
      return this.logger.debug(`${where} refused a value of its client: ${error.message}`);
    }
    const place = `${code} ${where}`;
    if (this.reported.has(place)) return;
    for (const oldest of this.reported) {
      if (this.reported.size < MAX_PLACES) break;
      this.reported.delete(oldest);
    }
    this.reported.add(place);
    this.logger.error(`${where} failed with ${code}: ${error.message} This is logged once.`, error.stack);
  }
}
