import type { ProxyConnection } from '../../support/tcp-proxy.js';
import { SCRIPTS, type ScriptName } from '../catalogue/scripts.js';

/** What a request does. A database has not all of them: the others never come. */
export type RequestName = ScriptName;

/** Tells whether a request is on its way to the server in what a connection sends. */
export type Recognizes = (request: RequestName, connection: ProxyConnection, chunk: Buffer) => boolean;

/** Recognizes a request of Redis by the script that it runs. */
export const recognizesScript: Recognizes = (request, _connection, chunk) =>
  SCRIPTS[request].some((sha) => chunk.includes(sha));
