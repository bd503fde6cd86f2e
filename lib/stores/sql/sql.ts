import { StoreFailure, type StoreOutcome } from '../../core/seam/store-failure.js';

/**
 * Value of a parameter. Text is passed as bytes, so that neither the collation nor the escaping of a server matters. In a
 * list it is text: a driver would write bytes there as their digits.
 */
export type SqlValue = Buffer | number | readonly (string | number)[];

/** A statement, or a part of one, with its parameters. */
export class Sql {
  /** @param texts one more than `values`: what is between them */
  constructor(
    readonly texts: readonly string[],
    readonly values: readonly SqlValue[] = [],
  ) {}
}

/** Returns a part of a statement that has no parameters. */
export const raw = (text: string): Sql => new Sql([text]);

/** What a template was last joined to, from parts with these texts. */
interface Joined {
  readonly from: readonly (readonly string[] | undefined)[];
  readonly texts: readonly string[];
}

const lastJoined = new WeakMap<TemplateStringsArray, Joined>();

const textsOf = (part: Sql | SqlValue): readonly string[] | undefined =>
  part instanceof Sql ? part.texts : undefined;

/**
 * Joins text, parts and parameters into a statement. Statements of one template and the same parts share their texts: joining
 * them would cost more than sending them.
 *
 * @example
 * sql`UPDATE ${table} SET until = ${NOW} WHERE name = ${name}`
 */
export const sql = (strings: TemplateStringsArray, ...parts: readonly (Sql | SqlValue)[]): Sql => {
  const values: SqlValue[] = [];
  for (const part of parts) {
    if (part instanceof Sql) values.push(...part.values);
    else values.push(part);
  }
  let known = lastJoined.get(strings);
  if (!known || parts.some((part, i) => textsOf(part) !== known!.from[i])) {
    known = { from: parts.map(textsOf), texts: joinedTexts(strings, parts) };
    lastJoined.set(strings, known);
  }
  return new Sql(known.texts, values);
};

const joinedTexts = (strings: readonly string[], parts: readonly (Sql | SqlValue)[]): readonly string[] => {
  const texts = [strings[0]!];
  for (const [i, part] of parts.entries()) {
    // A value ends a text, and so does each value of a part.
    const [first, ...others] = textsOf(part) ?? ['', ''];
    texts[texts.length - 1] += first!;
    texts.push(...others);
    texts[texts.length - 1] += strings[i + 1]!;
  }
  return texts;
};

/** Joins parts with a separator, as a list or the rows of a table. */
export const joined = (parts: readonly Sql[], separator: string): Sql => {
  const texts = [''];
  for (const [at, { texts: its }] of parts.entries()) {
    texts[texts.length - 1] += (at > 0 ? separator : '') + its[0]!;
    texts.push(...its.slice(1));
  }
  return new Sql(
    texts,
    parts.flatMap(({ values }) => values),
  );
};

/** A statement, or several in one message, and how its reply is read. */
export interface Statement<T> {
  readonly sql: Sql;
  /** Reads the reply of the driver. */
  readonly read: (reply: unknown) => T;
  /**
   * Whether a connection prepares the statement when it is first sent. Then the server only executes it: that costs much
   * less. Its text must be one of few, so what differs between requests is a parameter. Without effect behind a pooler.
   */
  readonly prepared?: boolean;
}

/** Reply to a request whose row is missing. */
export const NO_ROW = 'no row';
/** Reply to a request whose key is not free, as far as was read: it is sent alone, and finds no lock of others on its row. */
export const NOT_FREE = 'not free';

/** A reply to one of several requests. Undefined: others have locked its row. Then it is sent alone, after a look at that. */
export type OneOf<T> = T | undefined | typeof NO_ROW | typeof NOT_FREE;

/** Statements for requests that are sent together when several wait. None of them waits for a row. */
export interface Together<C, T> {
  /** Returns the statement of a request without company. Default: its own one. */
  one?(claim: C): Statement<T | undefined>;
  /** Replies in the order of the claims, which are about different keys. */
  many(claims: readonly C[]): Statement<readonly OneOf<T>[]>;
  /** How requests are sent whose row is missing. Default: alone. */
  readonly inserting?: Together<C, T>;
}

/** One connection to a database, with one statement under way at most. */
export interface SqlSession {
  /** Whether the connection has ended. */
  readonly isOver: boolean;
  /** Whether it sends each request alone. */
  readonly sendsAlone?: boolean;
  /** Sends a statement. Rejects with a {@link SqlFailure}. */
  send<T>(statement: Statement<T>): Promise<T>;
  /** Ends the connection at once, whatever is under way. */
  destroy(): void;
}

/** A failed statement, with the connection on which it was sent: an undo needs it. */
export class SqlFailure extends StoreFailure {
  /** Private, since a log that shows all of an error would show the password of the connection. */
  readonly #session: SqlSession | undefined;

  /** @param session undefined when nothing was sent */
  constructor(
    message: string,
    outcome: StoreOutcome,
    options: ConstructorParameters<typeof StoreFailure>[2],
    session?: SqlSession,
  ) {
    super(message, outcome, options);
    this.#session = session;
  }

  get session(): SqlSession | undefined {
    return this.#session;
  }
}

/** Returns whether the server has refused a statement, and would do so again. */
export const isRefused = (failure: unknown): failure is StoreFailure =>
  failure instanceof StoreFailure &&
  failure.outcome === 'not-executed' &&
  !(failure.transient || failure.passing || failure.overloaded);
