import type { Placeholder } from './template-syntax.js';

/**
 * Function that returns the path of a placeholder in the HTTP request, such as `['query', 'id']`. It gets the index of
 * the argument and the names inside it. It returns undefined for an argument that is no part of the request.
 */
export type RequestPathOf = (index: number, path: readonly string[]) => readonly string[] | undefined;

/** Parts of a request that the client writes. */
const PARTS: ReadonlySet<string | undefined> = new Set(['headers', 'query', 'params', 'body']);

/**
 * Returns true when the HTTP client chose the value of a placeholder. The headers, the query and the params as a whole
 * are objects whatever the client sends: a placeholder for one of them is a mistake in the code. So is the name of a
 * header in upper case, which no request has.
 *
 * @param argument index of the argument that the placeholder reads; undefined for `<<$name>>`
 * @param depth number of the path's names that could be read
 */
export function isFromClient(
  { path }: Placeholder,
  argument: number | undefined,
  depth: number,
  requestPathOf: RequestPathOf | undefined,
): boolean {
  const whole = argument === undefined ? undefined : requestPathOf?.(argument, path);
  if (whole === undefined) return false;
  const [part, ...inside] = whole;
  const known = whole.length - (path.length - depth);
  if (part === 'body') return known >= 0;
  return PARTS.has(part) && inside.length > 0 && known > 0 && !isUnknownHeader(whole);
}

/** Returns true for a header name that no request has: Node writes the names in lower case. */
export const isUnknownHeader = ([part, name = '']: readonly string[]): boolean =>
  part === 'headers' && name !== name.toLowerCase();
