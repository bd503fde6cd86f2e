import { detached as outsideLocks } from './core/nesting/section.js';
import { besideRequest } from './transport/request-context.js';

/**
 * Runs `fn` outside every enclosing lock, and beside the request: what it locks, it takes for real, and a client
 * that goes away does not end its waits. For work that nobody waits for, and for event listeners, which otherwise
 * would run as a part of the section that emitted. `<<$request…>>` in keys still works.
 *
 * @example detached(() => void this.mailer.send(order));
 */
export const detached = <T>(fn: () => T): T => besideRequest(() => outsideLocks(fn));
