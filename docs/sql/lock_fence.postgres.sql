CREATE TABLE IF NOT EXISTS "lock_fence" (
  name text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  seen timestamptz NOT NULL
);
