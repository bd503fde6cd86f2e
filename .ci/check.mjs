// Runs every check, also after one has failed, and reports all results at the end.
//
//   node .ci/check.mjs [--report=file]     writes { "passed", "failed", "failures" } as JSON
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { npm } from './process.mjs';

// Scripts of package.json, so that each can also be run alone.
const CHECKS = ['types', 'lint', 'format:check', 'deps', 'lockfile', 'build', 'api', 'publint', 'attw'];

const { values } = parseArgs({ options: { report: { type: 'string' } } });

const passes = (name) => {
  console.log(`\n--- ${name}`);
  try {
    npm('run', '--silent', name);
    return true;
  } catch (error) {
    console.error(error.message);
    return false;
  }
};

const results = CHECKS.map((name) => ({ name, passed: passes(name) }));
const failures = results.filter(({ passed }) => !passed).map(({ name }) => name);
if (values.report) {
  const counts = { passed: results.length - failures.length, failed: failures.length, failures };
  writeFileSync(values.report, JSON.stringify(counts));
}

console.log('');
for (const { name, passed } of results) console.log(`${passed ? 'ok    ' : 'FAILED'} ${name}`);
process.exitCode = failures.length === 0 ? 0 : 1;
