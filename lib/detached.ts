import { detached as outsideLocks } from './core/nesting/section.js';

/**
 * Runs `fn` outside every enclosing lock. Its locks are acquired from the store.
 *
 * Use it for background work, and for event listeners: without it they run as part of the section that emitted the
 * event.
 *
 * @example detached(() => void this.mailer.send(order));
 */
export const detached = <T>(fn: () => T): T => outsideLocks(fn);
