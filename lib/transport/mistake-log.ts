import { Logger } from '@nestjs/common';
import type { LockError, LockErrorCode } from '../core/errors/lock.errors.js';

/** Codes of programming errors: the client's message names no cause, and Nest does not log HTTP exceptions. */
const MISTAKES: ReadonlySet<LockErrorCode> = new Set([
  'LOCK_KEY_INVALID',
  'LOCK_CONFIGURATION',
  'LOCK_NOT_REENTRANT',
]);

/** More places than an app has methods: the set stays bounded, and nothing is logged twice. */
const MOST_PLACES = 1_000;

/** Logs programming errors, once for each place and code. */
export class MistakeLog {
  private readonly told = new Set<string>();
  private readonly logger = new Logger('RedisLockModule');

  constructor(private readonly mostPlaces = MOST_PLACES) {}

  /** Number of remembered places and codes. */
  get size(): number {
    return this.told.size;
  }

  /**
   * Logs the error if it is a programming error.
   *
   * @param where the method or route, never text that differs from call to call
   */
  tell(error: LockError, where: string): void {
    const { code } = error;
    if (!MISTAKES.has(code)) return;
    const entry = `${code} ${where}`;
    if (this.told.has(entry)) return;
    for (const oldest of this.told) {
      if (this.told.size < this.mostPlaces) break;
      this.told.delete(oldest);
    }
    this.told.add(entry);
    this.logger.error(`${where} failed with ${code}: ${error.message} This is logged once.`, error.stack);
  }
}
