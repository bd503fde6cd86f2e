import { requestContext, requestOfHandler } from '../transport/request-context.js';

/** Metadata key under which `@Query`, `@Req`, GraphQL's `@Context` and others store the parameters of a method. */
const PARAMETERS = '__routeArguments__';
/** Metadata key under which `@Get`, `@Post` and others store the path of an HTTP handler. */
const PATH = 'path';

/** Where parameters are in the HTTP request, by Nest's numbers of them. Each transport has numbers of its own. */
const SOURCES = {
  http: new Map([
    ['0', []],
    ['3', ['body']],
    ['4', ['query']],
    ['5', ['params']],
    ['6', ['headers']],
  ]),
  // The context of GraphQL has the request by convention.
  graphql: new Map([['1', []]]),
} satisfies Record<string, ReadonlyMap<string, readonly string[]>>;

type Parameters = Readonly<Record<string, { readonly index: number; readonly data?: unknown }>>;

/**
 * Returns the path of a placeholder in the HTTP request: `['query', 'id']` for `@Query('id')`. Returns undefined for a
 * parameter with another decorator.
 *
 * @param path names inside the argument
 */
export const requestPath = (
  owner: object,
  property: string | symbol,
  index: number,
  path: readonly string[],
  transport: keyof typeof SOURCES = 'http',
): readonly string[] | undefined => {
  const parameters = (Reflect.getMetadata(PARAMETERS, owner, property) ?? {}) as Parameters;
  for (const [id, { index: at, data }] of Object.entries(parameters)) {
    // Custom decorators have other ids: the name of their own metadata key stands inside.
    const source = at === index ? SOURCES[transport].get(id.slice(0, id.indexOf(':'))) : undefined;
    if (source === undefined) continue;
    // As Nest reads `@Headers('X-Tenant')`.
    const name =
      typeof data === 'string' && data !== '' ? [source[0] === 'headers' ? data.toLowerCase() : data] : [];
    const whole = [...source, ...name, ...path];
    if (transport === 'http') return whole;
    return whole[0] === 'req' ? whole.slice(1) : undefined;
  }
  return undefined;
};

/**
 * Returns the same for a call, if Nest makes it for a request. If other code calls the method, or another transport, its
 * arguments are not the client's. Without the interceptor a direct call of an HTTP handler looks like a request.
 */
export const requestPathOf = (
  self: unknown,
  property: string | symbol,
  index: number,
  path: readonly string[],
): readonly string[] | undefined => {
  if (typeof self !== 'object' || self === null) return undefined;
  const request = requestOfHandler(self, property);
  if (!request && (requestContext.getStore() || !hasRoute(self, property))) return undefined;
  return requestPath(self.constructor, property, index, path, request?.transport);
};

const hasRoute = (self: object, property: string | symbol): boolean => {
  const method = (self as Record<string | symbol, unknown>)[property];
  return typeof method === 'function' && Reflect.hasMetadata(PATH, method);
};
