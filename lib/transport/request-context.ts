import { AsyncLocalStorage } from 'node:async_hooks';
import { sharedByBuilds } from '../core/both-builds.js';

/** What the interceptor knows of the current request. */
export interface RequestContext {
  /** HTTP request, for `<<$request.…>>`. */
  readonly request: unknown;
  /** Method that Nest calls for the HTTP request; undefined on other transports, and for work beside the request. */
  readonly handler?: unknown;
  /**
   * Signal that aborts when the client disconnects. Undefined after the request: work that starts later is no part of
   * it.
   */
  signal: AbortSignal | undefined;
  /** Registers a locked Observable of this call; returns a function to call at its end. */
  readonly streamBegins?: () => () => void;
}

// One for both builds: the interceptor of one serves methods decorated by the other.
export const requestContext = sharedByBuilds('request', new AsyncLocalStorage<RequestContext>());

/**
 * Runs `fn` outside the request: a client that disconnects ends none of its waits. The request stays readable for keys.
 */
export const besideRequest = <T>(fn: () => T): T => {
  const context = requestContext.getStore();
  return context ? requestContext.run({ request: context.request, signal: undefined }, fn) : fn();
};
