import type { RefusedSetting, SessionSetting } from '../sql/sql-settings.js';
import { raw, type Sql } from '../sql/sql.js';

/**
 * Settings of each session, beside its time-outs. Behind a pooler nothing is set: the session belongs to another app next.
 * `REFUSED_SETTINGS` says what the store needs there.
 */
export const SESSION_SETTINGS: readonly SessionSetting[] = [
  {
    name: 'default_transaction_isolation',
    value: "'read committed'",
    why: 'a statement that has waited for a row sees its newest version',
  },
  {
    name: 'synchronous_commit',
    value: "replace(current_setting('synchronous_commit'), 'off', 'on')",
    why: 'a crash of the server loses no granted lock; other values stay',
  },
  { name: 'jit', value: "'off'", why: 'a plan that looks costly would be compiled, for longer than it runs' },
  {
    name: 'enable_seqscan',
    value: "'off'",
    why: 'a plan that is made while the table is small would read all of it, also when the table is large',
  },
];

export const SET_SESSION: Sql = raw(
  `SELECT ${SESSION_SETTINGS.map(({ name, value }) => `set_config('${name}', ${value}, false)`).join(', ')}`,
);

/** Costs that no plan of a store reaches by itself. */
const HUGE_COST = 1_000_000;
const COSTS = ['cpu_tuple_cost', 'cpu_index_tuple_cost', 'cpu_operator_cost', 'random_page_cost'];

/** What the start reads in its session, after all that a session sets. */
export const REFUSED_SETTINGS: readonly RefusedSetting[] = [
  {
    name: 'default_transaction_isolation',
    isRefused: (value) => !/^read (?:un)?committed$/.test(value),
    why: 'requests for a key that another process has just changed would fail',
    instead: 'read committed',
  },
  {
    name: 'synchronous_commit',
    isRefused: (value) => value === 'off',
    why: 'a crash of the server would lose granted locks',
    instead: 'on',
  },
  {
    name: 'jit',
    isRefused: (value, all) =>
      value === 'on' &&
      (all['enable_nestloop'] === 'off' || COSTS.some((cost) => Number(all[cost]) > HUGE_COST)),
    why: 'other settings make each plan look costly, and compiling it takes longer than a request may take',
    instead: 'off',
  },
];

/** Settings that the start reads. */
export const READ_SETTINGS: readonly string[] = [
  ...REFUSED_SETTINGS.map(({ name }) => name),
  'enable_nestloop',
  ...COSTS,
];
