import { detached as outsideLocks } from './core/nesting/section.js';
import { besideRequest } from './transport/request-context.js';

/**
 * Runs `fn` outside every enclosing lock and outside the current request. Its locks are acquired from the store, and an
 * HTTP client that disconnects does not end its waits. `<<$request…>>` in keys still works.
 *
 * Use it for background work, and for event listeners: without it they run as part of the section that emitted the
 * event.
 *
 * @example detached(() => void this.mailer.send(order));
 */
export const detached = <T>(fn: () => T): T => besideRequest(() => outsideLocks(fn));
