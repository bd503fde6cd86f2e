import type { RefusedSetting, SessionSetting } from '../sql/sql-settings.js';
import { raw, type Sql } from '../sql/sql.js';

/** The greatest number: all rows, or no limit. */
const NO_LIMIT = '18446744073709551615';

/**
 * Settings of each session. Behind a proxy that shares connections nothing is set: the session belongs to another app next.
 * `REFUSED_SETTINGS` says what the store needs there.
 */
export const SESSION_SETTINGS: readonly SessionSetting[] = [
  {
    name: 'sql_mode',
    value: "'STRICT_ALL_TABLES'",
    why: 'a mode changes what statements mean; strict, so that no value is cut off',
  },
  { name: 'autocommit', value: '1', why: 'a statement stands when its reply arrives' },
  { name: 'innodb_lock_wait_timeout', value: '1', why: 'a locked row delays other keys only for this time' },
  { name: 'lock_wait_timeout', value: '1', why: 'the same for a table whose definition is being changed' },
  { name: 'sql_select_limit', value: NO_LIMIT, why: 'a renewal reads all of its rows' },
  { name: 'sql_big_selects', value: '1', why: 'max_join_size would refuse statements that count permits' },
  { name: 'sql_safe_updates', value: '0', why: 'it would refuse statements that delete expired rows' },
];

export const SET_SESSION: Sql = raw(
  `SET SESSION ${SESSION_SETTINGS.map(({ name, value }) => `${name} = ${value}`).join(', ')}`,
);

interface ReadSetting extends RefusedSetting {
  /** How a session reads it. */
  readonly read: string;
}

const MIN_BYTES = 1_048_576;
const MIN_ROWS = 1_000_000;

/** What the start reads in its session, after all that a session sets. */
export const REFUSED_SETTINGS: readonly ReadSetting[] = [
  {
    name: 'sql_mode',
    read: '@@sql_mode',
    isRefused: (value) => /\b(?:EMPTY_STRING_IS_NULL|ORACLE)\b/.test(value),
    why: 'statements with empty texts mean something else',
    instead: 'a value without EMPTY_STRING_IS_NULL and ORACLE',
  },
  {
    name: 'autocommit',
    read: '@@autocommit',
    isRefused: (value) => Number(value) !== 1,
    why: 'its statements would never be committed',
    instead: '1',
  },
  {
    name: 'sql_select_limit',
    read: '@@sql_select_limit',
    isRefused: (value) => Number(value) < MIN_ROWS,
    why: 'rows of held locks would be left out, and the locks look lost',
    instead: NO_LIMIT,
  },
  {
    name: 'sql_safe_updates',
    read: '@@sql_safe_updates',
    isRefused: (value) => Number(value) !== 0,
    why: 'renewals would be refused',
    instead: '0',
  },
  {
    name: 'max_join_size',
    read: `IF(@@sql_big_selects, ${NO_LIMIT}, @@max_join_size)`,
    isRefused: (value) => Number(value) < MIN_ROWS,
    why: 'statements that count permits would be refused',
    instead: NO_LIMIT,
  },
  {
    name: 'tmp_disk_table_size',
    // MySQL does not have it, and passes over comments for MariaDB.
    read: `COALESCE(/*M! @@tmp_disk_table_size, */ ${NO_LIMIT})`,
    isRefused: (value) => Number(value) < MIN_BYTES,
    why: 'renewals would fail',
    instead: `at least ${MIN_BYTES}`,
  },
  {
    name: 'max_allowed_packet',
    read: '@@max_allowed_packet',
    isRefused: (value) => Number(value) < MIN_BYTES,
    why: 'a renewal of many locks is one long statement, and a session cannot set it',
    instead: `at least ${MIN_BYTES}`,
  },
];
