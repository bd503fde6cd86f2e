/** Comment of the table, which names the version of its columns. */
export const VERSION = 'nest-redis-lock 1';

/** Returns the statement that creates the table. */
export const migrationOf = (table: string): string => `CREATE TABLE IF NOT EXISTS \`${table}\` (
  name VARBINARY(512) NOT NULL,
  member VARBINARY(200) NOT NULL DEFAULT '',
  kind VARBINARY(16) NOT NULL DEFAULT '',
  owner VARBINARY(200) NOT NULL DEFAULT '',
  since BIGINT NOT NULL DEFAULT 0,
  until BIGINT NOT NULL DEFAULT 0,
  fence BIGINT NOT NULL DEFAULT 0,
  permits INT NOT NULL DEFAULT 0,
  queue VARBINARY(850) NOT NULL DEFAULT '',
  bell VARBINARY(40) NOT NULL DEFAULT '',
  PRIMARY KEY (name, member)
) ENGINE=InnoDB COMMENT='${VERSION}'`;

/** Returns the statements that create the table again. */
export const recreationOf = (table: string): string => `DROP TABLE \`${table}\`; ${migrationOf(table)}`;
