import type { Placeholder } from './template-syntax.js';

/**
 * Path of an argument in the HTTP request, such as `['query', 'id']`, called with the index of the argument; undefined
 * for an argument that is not a part of the request.
 */
export type RequestPathOf = (index: number) => readonly string[] | undefined;

/** Parts of a request that the client writes. */
const PARTS: ReadonlySet<string | undefined> = new Set(['headers', 'query', 'params', 'body']);

/**
 * Returns true when the HTTP client chose the value of a placeholder. The headers, the query and the params as a whole
 * are objects whatever the client sends: a placeholder for one of them is a mistake in the code.
 *
 * @param argument index of the argument that the placeholder reads; undefined for `<<$name>>`
 * @param depth number of the path's names that could be read
 */
export function isFromClient(
  { root, path }: Placeholder,
  argument: number | undefined,
  depth: number,
  requestPathOf: RequestPathOf | undefined,
): boolean {
  if (root === '$request') return startsAtClient(path) && (depth > 0 || path[0] === 'body');
  const ofArgument = argument === undefined ? undefined : requestPathOf?.(argument);
  return ofArgument !== undefined && startsAtClient([...ofArgument, ...path]);
}

const startsAtClient = ([part, ...inside]: readonly string[]): boolean =>
  PARTS.has(part) && (inside.length > 0 || part === 'body');
