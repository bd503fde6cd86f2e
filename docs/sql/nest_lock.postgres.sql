CREATE TABLE IF NOT EXISTS "nest_lock" (
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
COMMENT ON TABLE "nest_lock" IS 'nest-redis-lock 1';
