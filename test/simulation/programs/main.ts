// node --import ./test/support/typescript/register-with-source.mjs test/simulation/programs/main.ts --record | --show 'sql 17'
//
// Records what the library does in each program, or prints what one of them shows, to compare it with another commit.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { RECORDED } from './recorded.js';
import { digestOf, PROGRAMS, runProgram } from './programs.js';

const { values } = parseArgs({ options: { record: { type: 'boolean' }, show: { type: 'string' } } });

if (values.show !== undefined) {
  const { visible, requests } = await runProgram(values.show);
  console.log([...visible, `${requests} requests`].join('\n'));
} else if (values.record) {
  const rows: Record<string, readonly [digest: string, requests: number]> = {};
  for (const name of PROGRAMS) {
    const shown = await runProgram(name);
    rows[name] = [digestOf(shown), shown.requests];
  }
  const lines = Object.entries(rows).map(
    ([name, [digest, requests]]) => `  "${name}": ["${digest}", ${requests}]`,
  );
  writeFileSync(RECORDED, `{\n${lines.join(',\n')}\n}\n`);
}
