import { requestContext } from '../transport/request-context.js';

/** Metadata key under which `@Query`, `@Param`, `@Body` and `@Headers` store the parameters of a method. */
const PARAMETERS = '__routeArguments__';
/** Metadata key under which `@Get`, `@Post` and others store the path of an HTTP handler. */
const PATH = 'path';

/** Parts of the request by Nest's numbers of them. Other transports use the same metadata key and some of its numbers. */
const PARTS = new Map([
  ['3', 'body'],
  ['4', 'query'],
  ['5', 'params'],
  ['6', 'headers'],
]);

type Parameters = Readonly<Record<string, { readonly index: number; readonly data?: unknown }>>;

/**
 * Returns the path of a parameter in the HTTP request: `['query', 'id']` for `@Query('id')`. Returns undefined for a
 * parameter with another decorator, and if the method does not run as an HTTP handler.
 */
export const requestPathOf = (
  self: unknown,
  property: string | symbol,
  index: number,
): readonly string[] | undefined => {
  if (typeof self !== 'object' || self === null || !runsAsHandler(self, property)) return undefined;
  const parameters = (Reflect.getMetadata(PARAMETERS, self.constructor, property) ?? {}) as Parameters;
  for (const [id, { index: at, data }] of Object.entries(parameters)) {
    // Custom decorators have other ids: the name of their own metadata key stands inside.
    const part = at === index ? PARTS.get(id.slice(0, id.indexOf(':'))) : undefined;
    if (part !== undefined) return typeof data === 'string' && data !== '' ? [part, data] : [part];
  }
  return undefined;
};

/**
 * Returns true when Nest calls the method for an HTTP request. If other code calls it, or another transport, its
 * arguments are not the client's. Without the interceptor a direct call of a handler looks like a request.
 */
const runsAsHandler = (self: object, property: string | symbol): boolean => {
  const method = (self as Record<string | symbol, unknown>)[property];
  if (typeof method !== 'function') return false;
  const call = requestContext.getStore();
  return call ? call.handler === method : Reflect.hasMetadata(PATH, method);
};
