import type { Backend } from './backend.js';
import { UsageError } from './options.js';

/** A server that the user may name. */
export interface GivenServer {
  /** What the output calls it. */
  readonly title: string;
  /** Variable that names it. */
  readonly variable: string;
  readonly example: string;
  /** Default: whether it is a URL. */
  readonly isAddress?: (text: string) => boolean;
  /** Uses the server once, and rejects when that is not possible. */
  readonly probe?: (url: string) => Promise<unknown>;
}

/** Returns `host:port` of a URL that may contain a password; a connect string of ZooKeeper contains only this. */
export const place = (url: string): string => {
  if (!url.includes('://')) return url;
  const { hostname, port } = new URL(url);
  return port ? `${hostname}:${port}` : hostname;
};

/** Resolves with the server that a variable names, if it can be used; undefined when the variable is not set. */
export const given = async ({
  title,
  variable,
  example,
  isAddress = (text) => URL.canParse(text),
  probe,
}: GivenServer): Promise<Backend | undefined> => {
  const url = process.env[variable];
  if (!url) return undefined;
  if (!isAddress(url)) throw new UsageError(`${variable} must be an address such as ${example}.`);
  const server = { url, description: `the one of ${variable} at ${place(url)}` };
  await probe?.(url).catch((error: unknown) => {
    throw cannotBeUsed(title, server, error);
  });
  return server;
};

/** Returns the error for a server that the demo cannot use. */
export const cannotBeUsed = (title: string, { description }: Backend, error: unknown): UsageError =>
  new UsageError(`${title} cannot be used (${description}): ${reasonOf(error)}`);

/** Returns what an error says. One for several addresses says it in its parts. */
const reasonOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.map((one) => reasonOf(one)).join('; ');
  return error instanceof Error ? error.message || error.name : String(error);
};
