// Reads a report of vitest's "json" reporter.
import { readFileSync } from 'node:fs';

/**
 * Counts the tests of a report, whose vitest ended with `exitCode`. A test that did not run has not passed: it is in
 * `notRun`, and counts as failed unless `mayBeLeftOut` returns true for it.
 */
export const readTestReport = (file, exitCode, mayBeLeftOut = () => false) => {
  const files = JSON.parse(readFileSync(file, 'utf8')).testResults;
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const passed = tests.filter(({ status }) => status === 'passed').length;
  const notRun = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
  const leftOut = notRun.filter(({ fullName }) => mayBeLeftOut(fullName));
  const failures = tests
    .filter(({ status }) => status === 'failed')
    .map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages.join('\n')}`);
  // A file that cannot be loaded, or whose hooks fail, fails without a failed test in it.
  for (const { status, assertionResults, name, message } of files) {
    if (status === 'failed' && assertionResults.every((test) => test.status !== 'failed'))
      failures.push(`${name}\n${message}`);
  }
  let failed = failures.length + notRun.length - leftOut.length;
  // No tests at all, an unhandled rejection, a crash: a failure that belongs to no test.
  if (failed === 0 && (passed === 0 || exitCode !== 0)) {
    failed = 1;
    failures.push(`no test failed, of ${passed}, but vitest ended with ${exitCode}: see what it printed`);
  }
  return {
    passed,
    failed,
    failures,
    notRun: notRun.map(({ fullName }) => fullName),
    leftOut: leftOut.length,
  };
};
