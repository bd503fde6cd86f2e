import { AsyncLocalStorage } from 'node:async_hooks';

/** What the interceptor knows of the call that is being handled. */
export interface RequestContext {
  /** The HTTP request, for `<<$request.…>>`. */
  readonly request: unknown;
  /** Aborts when the client went away. */
  readonly signal: AbortSignal | undefined;
  /** Says that a locked Observable goes on in this call; returns what says that it has ended. */
  readonly streamBegins?: () => () => void;
}

// One for both builds: the interceptor of one serves methods decorated by the other.
const STORAGE = Symbol.for('nest-redis-lock:request');
const shared = globalThis as unknown as Record<symbol, AsyncLocalStorage<RequestContext> | undefined>;

export const requestContext = (shared[STORAGE] ??= new AsyncLocalStorage<RequestContext>());
