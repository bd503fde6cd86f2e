// The last line of .ci/run: adds up the checks, the tests and the matrix from their reports.
//
//   node .ci/summary.mjs <check report> <test report> <exit code of the tests> <matrix report>
//
import { readFileSync } from 'node:fs';
import { readTestReport } from './test-report.mjs';

const [checkReport, testReport, testCode, matrixReport] = process.argv.slice(2);

const NO_REPORT = { passed: 0, failed: 1 };

const read = (what, work) => {
  try {
    return work();
  } catch (error) {
    console.error(`no report of ${what}: ${error.message}`);
    return NO_REPORT;
  }
};

const json = (file) => JSON.parse(readFileSync(file, 'utf8'));

const checks = read('the checks', () => {
  const results = json(checkReport);
  const passed = results.filter((result) => result.passed).length;
  return { passed, failed: results.length - passed };
});

const tests = read('the tests', () => readTestReport(testReport, Number(testCode)));
for (const name of tests.notRun ?? []) console.log(`not run: ${name}`);

const matrix = read('the matrix', () => {
  const { rows, notRun } = json(matrixReport);
  if (notRun) console.log(notRun);
  const sum = (what) => rows.reduce((total, row) => total + row[what], 0);
  return { passed: sum('passed'), failed: sum('failed') };
});

const parts = [checks, tests, matrix];
const total = (what) => parts.reduce((sum, part) => sum + part[what], 0);
console.log(`${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') === 0 ? 0 : 1;
