// npm run test:settings: two apps on MariaDB and PostgreSQL, once under each setting that the server itself lists.
//
// Each boolean and each enumerated value, each least and greatest number, and each part of a set such as sql_mode becomes
// the default of the connections (`*-settings-lab.ts`). Two apps then do what locks promise (`drill.ts`). They hold, or
// the store refuses to start; the list of refusals is printed, with the reasons. Each setting is tried with `pooled: true`, too.
import { parseArgs } from 'node:util';
import { progressOn } from '../support/measure/progress.js';
import { MysqlSettingsLab } from './mysql-settings-lab.js';
import { PostgresSettingsLab } from './postgres-settings-lab.js';
import { verdictOn, type SettingsLab } from './settings-lab.js';

const LABS = { MariaDB: MysqlSettingsLab, PostgreSQL: PostgresSettingsLab };

const tally = { held: 0, refused: 0, impossible: 0, broke: 0 };
const lines: string[] = [];

const tryAll = async (lab: SettingsLab, only: string | undefined): Promise<void> => {
  const all = await lab.settings();
  const settings = all.filter(({ name }) => only === undefined || name.includes(only));
  const progress = progressOn(process.stderr, 1);
  progress.begin(`${lab.name}: ${settings.length} settings`, settings.length);
  for (const setting of settings) {
    for (const pooled of [false, true]) {
      const { outcome, reasons } = await verdictOn(lab, [setting], pooled);
      tally[outcome] += 1;
      if (outcome === 'held') continue;
      const how = pooled ? ', pooled' : '';
      lines.push(
        `${outcome.padEnd(10)} ${lab.name} ${setting.name} = '${setting.value}'${how}: ${reasons.join('; ')}`,
      );
    }
    progress.step();
  }
  progress.end();
};

const { values } = parseArgs({ options: { only: { type: 'string' }, database: { type: 'string' } } });
for (const [name, Lab] of Object.entries(LABS)) {
  if (values.database !== undefined && values.database !== name) continue;
  await using lab = await Lab.start();
  await tryAll(lab, values.only);
}
for (const line of lines.toSorted()) console.log(line);
console.log(
  `settings: ${tally.held} held, ${tally.refused} refused at the start, ${tally.impossible} not taken by the server, ${tally.broke} broke`,
);
process.exitCode = tally.broke === 0 && tally.held > 0 ? 0 : 1;
