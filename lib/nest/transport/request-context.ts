import { AsyncLocalStorage } from 'node:async_hooks';
import { sharedByBuilds } from '../../core/util/both-builds.js';

/** What the interceptor knows of a request of HTTP or GraphQL. */
export interface RequestContext {
  readonly transport: 'http' | 'graphql';
  /** Method that Nest calls for the request. */
  readonly handler: unknown;
  /** Signal that aborts when the client disconnects. Undefined as soon as a call has taken it, and after the request. */
  signal: AbortSignal | undefined;
  /** Registers a locked Observable that is read; returns a function to call at its end. */
  readonly streamBegins: () => () => void;
}

// One for both builds: the interceptor of one serves methods decorated by the other.
export const requestContext = sharedByBuilds('request', new AsyncLocalStorage<RequestContext>());

/** Returns the request in whose context the method is called, if the method is its handler. */
export const requestOfHandler = (self: unknown, property: PropertyKey): RequestContext | undefined => {
  const request = requestContext.getStore();
  const isObject = typeof self === 'object' && self !== null;
  return isObject && request?.handler === (self as Record<PropertyKey, unknown>)[property]
    ? request
    : undefined;
};

/**
 * Returns the signal of the request whose handler is called, to the first call only: that is Nest's. Any later call may
 * belong to another client's request: a task of a shared queue starts in the context of the task that ended before it.
 */
export const takeSignal = (self: unknown, property: PropertyKey): AbortSignal | undefined => {
  const request = requestContext.getStore()?.signal && requestOfHandler(self, property);
  const signal = request?.signal;
  if (request) request.signal = undefined;
  return signal;
};

/** Calls a handler that has a second decorator. That one takes the signal during the call; no other call can. */
export const handingOn = <T>(signal: AbortSignal | undefined, handler: () => T): T => {
  const request = requestContext.getStore();
  if (!request) return handler();
  const { signal: before } = request;
  request.signal = signal;
  try {
    return handler();
  } finally {
    request.signal = before;
  }
};
