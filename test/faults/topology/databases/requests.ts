import type { ProxyConnection } from '../../../support/tcp-proxy.js';
import type { Requests } from '../requests.js';

const OF_MYSQL: Requests['parts'] = {
  acquire: ['fence = LAST_INSERT_ID(GREATEST', 'LAST_INSERT_ID(2 * '],
  permit: ['VALUES(permits)'],
  extend: ['SELECT LAST_INSERT_ID(', 'GROUP BY n) v'],
  release: ["LAST_INSERT_ID(1 + (queue <> ''))", 'AS waiting FROM'],
  forceUnlock: ['SELECT kind FROM'],
};

const OF_POSTGRES: Requests['parts'] = {
  acquire: ["SET kind = 'exclusive'", 'DO UPDATE SET (kind, owner'],
  permit: ["SELECT permits, kind = 'permit'"],
  extend: ['WITH wanted'],
  release: ['RETURNING queue', 'SELECT waiting'],
  forceUnlock: ['WITH gone AS'],
};

/** Texts of the statements that are prepared on a connection, by name or number. */
class Prepared {
  private readonly texts = new WeakMap<ProxyConnection, Map<string, string>>();

  on(connection: ProxyConnection): Map<string, string> {
    const texts = this.texts.get(connection) ?? new Map<string, string>();
    this.texts.set(connection, texts);
    return texts;
  }
}

/** Commands of the protocol of MySQL, at the fifth byte of a packet. */
const PREPARE = 0x16;
const EXECUTE = 0x17;

/** The server numbers the statements that are prepared on a connection. Others go as text. */
export const mysqlRequests = (): Requests => {
  const prepared = new Prepared();
  return {
    parts: OF_MYSQL,
    textOf(connection, chunk) {
      const [texts, text] = [prepared.on(connection), chunk.toString('latin1')];
      if (chunk[4] === PREPARE) texts.set(String(texts.size + 1), text);
      return chunk[4] === EXECUTE ? (texts.get(String(chunk.readUInt32LE(5))) ?? '') : text;
    },
  };
};

/** Name of a prepared statement, and its text when it is prepared: the messages Parse and Bind of the protocol. */
const NAMED = /(lock \d+)\0([^\0]*)/g;

/** Statements of PostgreSQL are prepared under a name. Others go as text. */
export const postgresRequests = (): Requests => {
  const prepared = new Prepared();
  return {
    parts: OF_POSTGRES,
    textOf(connection, chunk) {
      const [texts, text] = [prepared.on(connection), chunk.toString('latin1')];
      let statements = text;
      for (const [, name, statement] of text.matchAll(NAMED)) {
        if (statement) texts.set(name!, statement);
        else statements += texts.get(name!) ?? '';
      }
      return statements;
    },
  };
};
