// Runs every check, also after one has failed, and reports all results at the end.
//
//   node .ci/check.mjs [--report=file]     writes { "passed", "failed", "failures" } as JSON
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { npmAside } from './process.mjs';

// Scripts of package.json, so that each can also be run alone. The lanes run side by side: the first one takes as long as
// the other one.
const LANES = [['lint'], ['types', 'format:check', 'deps', 'lockfile', 'build', 'api', 'publint', 'attw']];

const { values } = parseArgs({ options: { report: { type: 'string' } } });

const runLane = async (lane) => {
  const results = [];
  for (const name of lane) {
    const { output, failure } = await npmAside('run', '--silent', name);
    console.log(`\n--- ${name}\n${output}${failure ?? ''}`);
    results.push({ name, passed: failure === undefined });
  }
  return results;
};

const results = (await Promise.all(LANES.map(runLane))).flat();
const failures = results.filter(({ passed }) => !passed).map(({ name }) => name);
if (values.report) {
  const counts = { passed: results.length - failures.length, failed: failures.length, failures };
  writeFileSync(values.report, JSON.stringify(counts));
}

console.log('');
for (const { name, passed } of results) console.log(`${passed ? 'ok    ' : 'FAILED'} ${name}`);
process.exitCode = failures.length === 0 ? 0 : 1;
