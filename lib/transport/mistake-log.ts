import { Logger } from '@nestjs/common';
import type { LockError, LockErrorCode } from '../core/errors/lock.errors.js';

/** Whose trouble is the programmer's: a client hears only that it failed, and Nest logs no HTTP exception. */
const MISTAKES: ReadonlySet<LockErrorCode> = new Set([
  'LOCK_KEY_INVALID',
  'LOCK_CONFIGURATION',
  'LOCK_NOT_REENTRANT',
]);

/** More places than an app has methods, so that nothing is said twice, and nothing grows. */
const MOST_PLACES = 1_000;

/** Writes what is wrong with the code to the log, once for each place and code. */
export class MistakeLog {
  private readonly told = new Set<string>();
  private readonly logger = new Logger('RedisLockModule');

  constructor(private readonly mostPlaces = MOST_PLACES) {}

  /** For how many places and codes it remembers that it told. */
  get size(): number {
    return this.told.size;
  }

  /** `where` names the place: a method or a route, never anything that differs from call to call. */
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
