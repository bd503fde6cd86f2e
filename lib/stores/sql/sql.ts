/** Value of a parameter. Text is passed as bytes, so that neither the collation nor the escaping of a server matters. */
export type SqlValue = Buffer | number;

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

/**
 * Joins text, parts and parameters into a statement.
 *
 * @example
 * sql`UPDATE ${table} SET until = ${NOW} WHERE name = ${name}`
 */
export const sql = (strings: TemplateStringsArray, ...parts: readonly (Sql | SqlValue)[]): Sql => {
  const texts = [strings[0]!];
  const values: SqlValue[] = [];
  parts.forEach((part, i) => {
    const after = strings[i + 1]!;
    if (part instanceof Sql) {
      texts[texts.length - 1] += part.texts[0]!;
      texts.push(...part.texts.slice(1));
      values.push(...part.values);
      texts[texts.length - 1] += after;
    } else {
      values.push(part);
      texts.push(after);
    }
  });
  return new Sql(texts, values);
};

/** Joins parts with a separator, as a list or the rows of a table. */
export const joined = (parts: readonly Sql[], separator: string): Sql =>
  parts.slice(1).reduce((all, part) => sql`${all}${raw(separator)}${part}`, parts[0] ?? raw(''));
