import { AsyncLocalStorage } from 'node:async_hooks';
import { processWide } from '../core/process-wide.js';

/** What the interceptor knows of the call that is being handled. */
export interface RequestContext {
  /** The HTTP request, for `<<$request.…>>`. */
  readonly request: unknown;
  /** Aborts when the client goes away. Undefined once the request is over: what begins later is not a part of it. */
  signal: AbortSignal | undefined;
  /** Says that a locked Observable goes on in this call; returns what says that it has ended. */
  readonly streamBegins?: () => () => void;
}

// One for both builds: the interceptor of one serves methods decorated by the other.
export const requestContext = processWide('request', new AsyncLocalStorage<RequestContext>());

/** Runs `fn` as no part of the request: no client that leaves ends its waits. What the request says stays known. */
export const besideRequest = <T>(fn: () => T): T => {
  const context = requestContext.getStore();
  return context ? requestContext.run({ request: context.request, signal: undefined }, fn) : fn();
};
