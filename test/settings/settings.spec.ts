import { afterAll, describe, expect, it } from 'vitest';
import { MysqlSettingsLab } from './mysql-settings-lab.js';
import { PostgresSettingsLab } from './postgres-settings-lab.js';
import { verdictOn, type SettingsLab } from './settings-lab.js';

/** Settings by name. */
type Settings = Readonly<Record<string, string>>;

const HELD = { outcome: 'held', reasons: [] };
/** The reason of a refusal names the setting, and says what to do. */
const refusedFor = (name: string, remedy: RegExp) => ({
  outcome: 'refused',
  reasons: [expect.stringMatching(new RegExp(`cannot work with ${name} = .*${remedy.source}`))],
});

const start = (Lab: { start(): Promise<SettingsLab> }): (() => Promise<SettingsLab>) => {
  let lab: Promise<SettingsLab> | undefined;
  afterAll(async () => (await lab)?.[Symbol.asyncDispose]());
  return () => (lab ??= Lab.start());
};
const mysql = start(MysqlSettingsLab);
const postgres = start(PostgresSettingsLab);

const verdict = async (lab: SettingsLab, settings: Settings, pooled: boolean) =>
  verdictOn(
    lab,
    Object.entries(settings).map(([name, value]) => ({ name, value })),
    pooled,
  );

// All settings that the servers list are tried at night: main.ts.
describe('two apps keep the promises of locks, or do not start, under', () => {
  it.each<[string, () => Promise<SettingsLab>, Settings, object]>([
    [
      'MariaDB with SIMULTANEOUS_ASSIGNMENT',
      mysql,
      { sql_mode: 'SIMULTANEOUS_ASSIGNMENT,ANSI_QUOTES,NO_BACKSLASH_ESCAPES' },
      HELD,
    ],
    [
      'MariaDB in the mode for Oracle',
      mysql,
      { sql_mode: 'ORACLE,EMPTY_STRING_IS_NULL' },
      refusedFor('sql_mode', /Set sql_mode to a value without EMPTY_STRING_IS_NULL/),
    ],
    [
      'MariaDB with other transactions, limits and timeouts',
      mysql,
      {
        ...{ autocommit: 'OFF', completion_type: 'RELEASE', tx_isolation: 'READ-UNCOMMITTED' },
        ...{ sql_select_limit: '0', sql_safe_updates: 'ON', max_join_size: '1' },
      },
      refusedFor('autocommit', /Set autocommit to 1/),
    ],
    [
      'PostgreSQL with other transactions',
      postgres,
      { default_transaction_isolation: 'serializable', default_transaction_deferrable: 'on' },
      refusedFor('default_transaction_isolation', /ALTER ROLE "app" SET .* = 'read committed'/),
    ],
    [
      'PostgreSQL with other plans, texts and limits',
      postgres,
      {
        ...{ plan_cache_mode: 'force_generic_plan', enable_nestloop: 'off', jit: 'on' },
        ...{ standard_conforming_strings: 'off', bytea_output: 'escape', work_mem: '64', array_nulls: 'off' },
      },
      refusedFor('jit', /ALTER ROLE "app" SET jit = 'off'/),
    ],
  ])('%s', async (_set, lab, settings, behindProxy) => {
    expect(await verdict(await lab(), settings, false)).toEqual(HELD);
    expect(await verdict(await lab(), settings, true)).toEqual(behindProxy);
  });

  it('PostgreSQL whose role does not wait for the disk', async () => {
    const lab = await postgres();
    expect(await verdict(lab, { synchronous_commit: 'off' }, true)).toEqual(
      refusedFor('synchronous_commit', /ALTER ROLE "app" SET synchronous_commit = 'on'/),
    );
  });
});
