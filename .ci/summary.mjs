// The last line of .ci/run: adds up the checks, the tests, the matrix, the model and the tests beside
// Redisson from their reports. Before it stands again which checks and tests failed, and with what: what they
// printed at the time is thousands of lines above.
//
//   node .ci/summary.mjs <check report> <test report> <exit code of the tests> <matrix report> <model report> \
//     <interop report>
//
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { readTestReport } from './test-report.mjs';

const [checkReport, testReport, testCode, matrixReport, modelReport, interopReport] = process.argv.slice(2);

const NO_REPORT = { passed: 0, failed: 1 };

const read = (what, work) => {
  try {
    return work();
  } catch (error) {
    console.error(`no report of ${what}: ${error.message}`);
    return NO_REPORT;
  }
};

/** Enough of a failure to know it again: its test, what was expected and found, where it was thrown. */
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

const json = (file) => JSON.parse(readFileSync(file, 'utf8'));

const checks = read('the checks', () => {
  const results = json(checkReport);
  for (const { name, passed } of results) if (!passed) console.log(`FAILED check: ${name}`);
  const passed = results.filter((result) => result.passed).length;
  return { passed, failed: results.length - passed };
});

const tests = read('the tests', () => readTestReport(testReport, Number(testCode)));
for (const name of tests.notRun ?? []) console.log(`not run: ${name}`);
for (const failure of tests.failures ?? []) console.log(`FAILED test: ${shortened(failure)}`);

const matrix = read('the matrix', () => {
  const { rows, notRun } = json(matrixReport);
  if (notRun) console.log(notRun);
  const sum = (what) => rows.reduce((total, row) => total + row[what], 0);
  return { passed: sum('passed'), failed: sum('failed') };
});

const counted = (file) => () => {
  const { passed, failed, notRun } = json(file);
  if (notRun) console.log(notRun);
  return { passed, failed };
};
const model = read('the model', counted(modelReport));
const interop = read('the tests beside Redisson', counted(interopReport));

const parts = [checks, tests, matrix, model, interop];
const total = (what) => parts.reduce((sum, part) => sum + part[what], 0);
console.log(`${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') === 0 ? 0 : 1;
