import type { ProxyConnection } from '../../support/tcp-proxy.js';
import { SCRIPTS, type ScriptName } from '../catalogue/scripts.js';

/** What a request does. A database has not all of them: the others never come. */
export type RequestName = ScriptName;

/** How requests are recognized in what a connection sends. */
export interface Requests {
  /** Parts of the text that only these requests have. */
  readonly parts: Partial<Record<RequestName, readonly string[]>>;
  /** Returns the text of what a connection sends. It is given everything, in the order of sending. */
  textOf(connection: ProxyConnection, chunk: Buffer): string;
}

/** Requests of Redis: each names the script that it runs. */
export const SCRIPT_REQUESTS: Requests = {
  parts: SCRIPTS,
  textOf: (_connection, chunk) => chunk.toString('latin1'),
};
