import { Logger } from '@nestjs/common';
import { isTaken, type LockError, type LockErrorCode } from '../../core/errors/lock.errors.js';
import { clientPlaceholderOf } from './lock-error-mapping.js';

/** Codes of programming errors: the client's message names no cause, and Nest does not log HTTP exceptions. */
const MISTAKES: ReadonlySet<LockErrorCode> = new Set([
  'LOCK_KEY_INVALID',
  'LOCK_CONFIGURATION',
  'LOCK_NOT_REENTRANT',
]);

/** More routes than an app has: the set stays bounded, and nothing is logged twice. */
const MAX_ROUTES = 1_000;

/** Logs programming errors, most of them once for each place and code. Mistakes of clients are in the debug log only. */
export class MistakeLog {
  /** Codes by handler. Handlers of two classes may have one name. */
  private readonly ofHandlers = new WeakMap<object, Set<LockErrorCode>>();
  private readonly ofRoutes = new Set<string>();
  private readonly logger = new Logger('RedisLockModule');

  /**
   * Logs the error if it is a programming error, or at the level debug if the client made it.
   *
   * @param where the method or route, never text that differs from call to call
   * @param handler the method itself, if it is known
   */
  notify(error: LockError, where: string, handler?: object): void {
    const { code } = error;
    // Each of them: the call may have waited for itself, and its client got "taken".
    if (isTaken(error) && error.heldAround) {
      return this.logger.error(`${where} failed with ${code}: ${error.message}`, error.stack);
    }
    if (!MISTAKES.has(code)) return;
    if (clientPlaceholderOf(error) !== undefined) {
      return this.logger.debug(`${where} refused a value of its client: ${error.message}`);
    }
    if (handler ? this.isKnownOf(handler, code) : this.isKnownAt(`${code} ${where}`)) return;
    this.logger.error(`${where} failed with ${code}: ${error.message} This is logged once.`, error.stack);
  }

  private isKnownOf(handler: object, code: LockErrorCode): boolean {
    const codes = this.ofHandlers.get(handler) ?? new Set();
    this.ofHandlers.set(handler, codes);
    const isKnown = codes.has(code);
    codes.add(code);
    return isKnown;
  }

  private isKnownAt(route: string): boolean {
    const { ofRoutes } = this;
    if (ofRoutes.has(route)) return true;
    for (const oldest of ofRoutes) {
      if (ofRoutes.size < MAX_ROUTES) break;
      ofRoutes.delete(oldest);
    }
    ofRoutes.add(route);
    return false;
  }
}
