import type { ProxyConnection } from '../../../support/tcp-proxy.js';
import type { Recognizes, RequestName } from '../recognizes.js';

/** Parts of statements that only these requests have. */
type Texts = Partial<Record<RequestName, readonly string[]>>;

const OF_MYSQL: Texts = {
  acquire: ['fence = LAST_INSERT_ID(GREATEST', 'LAST_INSERT_ID(2 * '],
  permit: ['VALUES(permits)'],
  extend: ['SELECT LAST_INSERT_ID(', 'GROUP BY n) v'],
  release: ["LAST_INSERT_ID(1 + (queue <> ''))", 'AS waiting FROM'],
  forceUnlock: ['SELECT kind FROM'],
};

const OF_POSTGRES: Texts = {
  acquire: ['DO UPDATE SET (kind, owner'],
  permit: ["SELECT permits, kind = 'permit'"],
  extend: ['WITH wanted'],
  release: ['SELECT waiting'],
  forceUnlock: ['WITH gone AS'],
};

const hasOneOf = (texts: Texts, request: RequestName, statement: string): boolean =>
  texts[request]?.some((text) => statement.includes(text)) ?? false;

/** Statements of MySQL go as text. */
export const recognizesMysql: Recognizes = (request, _connection, chunk) =>
  hasOneOf(OF_MYSQL, request, chunk.toString('latin1'));

/** Name of a planned statement, and its text when it is planned: the messages Parse and Bind of the protocol. */
const PLANNED = /(lock \d+)\0([^\0]*)/g;

/** Statements of PostgreSQL go as text once on each connection, and later by the name of their plan. */
export const recognizesPostgres = (): Recognizes => {
  const planned = new WeakMap<ProxyConnection, Map<string, string>>();
  return (request, connection, chunk) => {
    const text = chunk.toString('latin1');
    const texts = planned.get(connection) ?? new Map<string, string>();
    planned.set(connection, texts);
    let statements = text;
    for (const [, name, plan] of text.matchAll(PLANNED)) {
      if (plan) texts.set(name!, plan);
      else statements += texts.get(name!) ?? '';
    }
    return hasOneOf(OF_POSTGRES, request, statements);
  };
};
