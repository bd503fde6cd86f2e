/** Comment of the table, which names the version of its columns. */
export const VERSION = 'nest-redis-lock 1';

/** Returns the quoted name of the table, for statements. */
export const quoted = (table: string, schema?: string): string =>
  schema === undefined ? `"${table}"` : `"${schema}"."${table}"`;

/**
 * Returns the statements that create the table. Each lock changes its row twice: room in each page keeps the versions of
 * a row together, and an early vacuum removes the old ones.
 */
export const migrationOf = (table: string, schema?: string): string => {
  const name = quoted(table, schema);
  return `CREATE TABLE IF NOT EXISTS ${name} (
  name text COLLATE "C" NOT NULL,
  member text COLLATE "C" NOT NULL DEFAULT '',
  kind text COLLATE "C" NOT NULL DEFAULT '',
  owner text COLLATE "C" NOT NULL DEFAULT '',
  since bigint NOT NULL DEFAULT 0,
  until bigint NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,
  permits integer NOT NULL DEFAULT 0,
  queue text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (name, member)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ${name} IS '${VERSION}'`;
};

/** Returns the statements that create the table again. */
export const recreationOf = (table: string, schema?: string): string =>
  `DROP TABLE ${quoted(table, schema)}; ${migrationOf(table, schema)}`;
