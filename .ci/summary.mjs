// The last line of .ci/run: adds up the checks and the tests from their reports.
//
//   node .ci/summary.mjs <check report> <test report> <exit code of the tests>
//
import { readFileSync } from 'node:fs';

const [checkReport, testReport, testCode] = process.argv.slice(2);

const read = (file, what) => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    console.error(`no report of ${what}: ${error.message}`);
    return undefined;
  }
};

const checks = read(checkReport, 'the checks') ?? [{ name: 'checks did not run', passed: false }];
const files = read(testReport, 'the tests')?.testResults ?? [];
const tests = files.flatMap((file) => file.assertionResults);

// A test that did not run is not a test that passed: skipped and to-do ones count as failed.
const passedTests = tests.filter(({ status }) => status === 'passed').length;
let failedTests = tests.length - passedTests;
// A file that cannot be loaded, or whose hooks fail, fails without a failed test in it.
failedTests += files.filter(
  (file) => file.status === 'failed' && file.assertionResults.every(({ status }) => status === 'passed'),
).length;
// No tests at all, an unhandled rejection, a crash: a failure that belongs to no test.
if (failedTests === 0 && (passedTests === 0 || Number(testCode) !== 0)) failedTests = 1;

const failedChecks = checks.filter(({ passed }) => !passed).length;
const failed = failedChecks + failedTests;
const notRun = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
for (const { fullName } of notRun) console.log(`not run: ${fullName}`);
console.log(`${checks.length - failedChecks + passedTests} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
