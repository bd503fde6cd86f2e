// Runs the steps of .ci/run or of .ci/nightly, also after one has failed, and adds up their reports. Failures, and
// steps that did not run, are listed again at the end: the output of a step is thousands of lines above. The last line
// is "N passed, N failed". The exit code is 0 only when nothing failed and something ran.
//
//   node .ci/steps.mjs run                  what has to pass before a change lands
//   node .ci/steps.mjs run --since=REV      the same; after a change of documents only: the checks and the tests of documents
//   node .ci/steps.mjs nightly              what takes too long for that
//   node .ci/steps.mjs nightly --strict     a row of the matrix that cannot run here is a failure
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { capture, npmWith, onPath } from './process.mjs';
import { readTestReport } from './test-report.mjs';

/** Reads a report of counts: { passed, failed, failures?: [what failed, and with what], notRun?: one line }. */
const counts = (file) => JSON.parse(readFileSync(file, 'utf8'));
const vitest = (...args) => ['--', ...args, '--reporter=default', '--reporter=json'];

const CHECK = { name: 'check', script: 'check', args: ['--'], read: counts };
const STEPS = {
  run: [
    CHECK,
    { name: 'tests', script: 'test', args: vitest(), read: readTestReport },
    { name: 'gate', script: 'test:gate', args: vitest(), read: readTestReport },
    { name: 'models', script: 'test:model', args: ['--', '--short'], read: counts },
  ],
  documents: [
    CHECK,
    { name: 'tests of documents', script: 'test', args: vitest('test/docs'), read: readTestReport },
  ],
  nightly: [
    // First: no other step finds more, and no other needs a quiet machine more.
    { name: 'laboratory', script: 'test:faults', args: ['--', '--minutes=18'] },
    // `npm test` has these tests, too; here they have no servers.
    { name: 'fast tests', script: 'test:fast', args: vitest(), read: readTestReport, withoutServers: true },
    { name: 'matrix', script: 'test:matrix', args: ['--', '--minutes=40'], strict: true, read: counts },
    { name: 'interop', script: 'test:interop', args: ['--'], read: counts },
    { name: 'mistakes', script: 'test:mistakes', args: vitest(), read: readTestReport },
    { name: 'overload', script: 'test:overload', args: vitest(), read: readTestReport },
    { name: 'sale', script: 'test:sale', args: vitest(), read: readTestReport },
    { name: 'rounds of the laboratory', script: 'test:laboratory', args: vitest(), read: readTestReport },
    { name: 'installs', script: 'test:installs', args: vitest(), read: readTestReport },
    { name: 'simulation', script: 'test:simulation', args: ['--', '--minutes=5'] },
    { name: 'seeds', script: 'test:seeds', args: vitest(), read: readTestReport },
    { name: 'models', script: 'test:model', args: ['--'], read: counts },
    { name: 'settings', script: 'test:settings', args: ['--'] },
    { name: 'soak', script: 'test:soak', args: ['--'] },
  ],
};

/** Maximum lines of a failure: enough to recognize it by its test, the expected and the actual value, and its place. */
const LINES_OF_A_FAILURE = 40;
const LONGEST_LINE = 1_000;
const isOfTheTestRunner = (line) => /^\s+at .*node_modules/.test(line);
const shortened = (failure) =>
  stripVTControlCharacters(failure)
    .split('\n')
    .filter((line) => !isOfTheTestRunner(line))
    .slice(0, LINES_OF_A_FAILURE)
    .map((line) => line.slice(0, LONGEST_LINE))
    .join('\n  ');

/** Returns the result of a step. A failed exit code counts even if the report of the step has no failure. */
const judged = ({ name, script, read }, file, status) => {
  const said = `npm run ${script} ended with ${status}`;
  if (!read) return { passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1, failures: [said] };
  try {
    const report = read(file, status);
    if (status === 0 || report.failed > 0) return report;
    return { ...report, failed: 1, failures: [`${said}, although its report says that nothing failed`] };
  } catch (error) {
    return { passed: 0, failed: 1, failures: [`${said}, without a report of the ${name}: ${error.message}`] };
  }
};

/** Returns an environment whose PATH has what npm needs, and no server. */
const withoutServers = (folder) => {
  for (const name of ['node', 'npm']) {
    const program = name === 'node' ? process.execPath : onPath(name);
    if (program && !existsSync(join(folder, name))) symlinkSync(program, join(folder, name));
  }
  return { ...process.env, PATH: folder };
};

const runStep = (step, folder, strict) => {
  const { script, args, read } = step;
  const file = join(folder, `${script.replace(':', '-')}.json`);
  const report = read ? [`--${read === counts ? 'report' : 'outputFile.json'}=${file}`] : [];
  const env = step.withoutServers ? withoutServers(folder) : process.env;
  const began = Date.now();
  console.log(`\n=== ${step.name}`);
  let status = 0;
  try {
    const strictly = strict && step.strict ? ['--strict'] : [];
    npmWith(env, 'run', '--silent', script, ...args, ...report, ...strictly);
  } catch (error) {
    status = error.status ?? 1;
  }
  return {
    ...judged(step, file, status),
    name: step.name,
    seconds: Math.round((Date.now() - began) / 1_000),
  };
};

const isDocument = (file) => file.endsWith('.md') || file.startsWith('docs/');

/** Returns true when only documents have changed; false also when the changes are unknown. */
const areDocuments = (since) => {
  if (!since) return false;
  try {
    const files = capture('git', ['diff', '--name-only', `${since}...HEAD`])
      .split('\n')
      .filter(Boolean);
    return files.length > 0 && files.every(isDocument);
  } catch {
    console.log(`it is unknown what has changed since ${since}: everything runs`);
    return false;
  }
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { since: { type: 'string' }, strict: { type: 'boolean' } },
});
const [which] = positionals;
if (which !== 'run' && which !== 'nightly') throw new Error(`steps: run or nightly, not ${which}`);
const steps = STEPS[which === 'run' && areDocuments(values.since) ? 'documents' : which];

const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-steps-'));
try {
  const results = steps.map((step) => runStep(step, folder, values.strict));
  console.log('');
  for (const { name, passed, failed, failures = [], notRun, seconds } of results) {
    for (const line of [notRun ?? []].flat()) if (line) console.log(`not run: ${line}`);
    if (failed > 0) for (const failure of failures) console.log(`FAILED in ${name}: ${shortened(failure)}`);
    console.log(`${name}: ${passed} passed, ${failed} failed, in ${seconds} s`);
  }
  const total = (what) => results.reduce((sum, result) => sum + result[what], 0);
  console.log(`${total('passed')} passed, ${total('failed')} failed`);
  process.exitCode = total('failed') === 0 && total('passed') > 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
