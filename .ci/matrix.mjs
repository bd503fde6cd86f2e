// Runs the tests on other versions of Node, Nest, ioredis and the server than the installed ones.
//
//   node .ci/matrix.mjs                    every row, with all of its suites
//   node .ci/matrix.mjs --list             lists the rows and their suites
//   node .ci/matrix.mjs --only node-22,nest-11
//   node .ci/matrix.mjs --short            the rows' short suites
//   node .ci/matrix.mjs --minutes 40       begins no row after 40 minutes
//   node .ci/matrix.mjs --strict           a row that cannot run here is a failure
//
// `--report=<file>` writes { "passed", "failed", "failures", "notRun": <a line> } as JSON. A row that cannot run here
// reports why. It counts neither as passed nor as failed.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROWS } from './matrix/rows.mjs';
import { root } from './process.mjs';
import { readTestReport } from './test-report.mjs';

const ROW_LIMIT_MS = 15 * 60_000;
const RESULTS = join(root, 'node_modules', '.cache', 'matrix', 'results');
/** Fails if the tests run on another version than that of the row. */
const VERSIONS_TEST = 'test/repository/versions.spec.ts';

const OPTIONS = {
  list: { type: 'boolean' },
  only: { type: 'string' },
  short: { type: 'boolean' },
  strict: { type: 'boolean' },
  minutes: { type: 'string' },
  report: { type: 'string' },
};

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

const chosen = ({ only }) => {
  if (only === undefined) return ROWS;
  const names = only.split(',').filter(Boolean);
  const unknown = names.filter((name) => !ROWS.some((row) => row.name === name));
  if (unknown.length > 0 || names.length === 0)
    throw new Error(`no row ${unknown.join(', ')}; there are ${ROWS.map(({ name }) => name).join(', ')}`);
  return ROWS.filter(({ name }) => names.includes(name));
};

const list = (rows) => {
  for (const { name, what, suites, short, except = {} } of rows) {
    console.log(
      `${name.padEnd(14)}${what.padEnd(14)}${suites.join(' ')}${short ? `  (short: ${short.join(' ')})` : ''}`,
    );
    for (const [test, why] of Object.entries(except))
      console.log(`${' '.repeat(14)}without "${test}": ${why}`);
  }
};

const runTests = ({ name, except = {} }, suites, { env, node = process.execPath, versions }) => {
  mkdirSync(RESULTS, { recursive: true });
  const [report, log] = ['json', 'log'].map((ending) => join(RESULTS, `${name}.${ending}`));
  rmSync(report, { force: true });
  const left = Object.keys(except).join('|');
  const output = openSync(log, 'w');
  const vitest = [
    ...[join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', VERSIONS_TEST, ...suites],
    ...['--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
    ...(left ? [`--testNamePattern=^(?!.*(${left}))`] : []),
  ];
  const { status, error } = spawnSync(node, vitest, {
    cwd: root,
    stdio: ['ignore', output, output],
    timeout: ROW_LIMIT_MS,
    killSignal: 'SIGKILL',
    env: { ...process.env, ...env, TEST_VERSIONS: JSON.stringify(versions) },
  });
  closeSync(output);
  try {
    if (error) throw error;
    return readTestReport(report, status, (test) => left !== '' && new RegExp(left).test(test));
  } catch (cause) {
    return {
      passed: 0,
      failed: 1,
      failures: [`${cause.message}; what vitest said is in ${log}`],
      leftOut: 0,
    };
  }
};

const runRow = (row, suites) => {
  const { name, what } = row;
  const began = Date.now();
  let provided;
  try {
    provided = row.provide();
  } catch (error) {
    console.log(`${name}: not run: ${error.message}`);
    return { name, passed: 0, failed: 0, notRun: error.message };
  }
  const ready = Date.now();
  const { passed, failed, failures, leftOut } = runTests(row, suites, provided);
  for (const failure of failures) console.log(`\nFAILED on ${what}: ${failure}\n`);
  const version = Object.values(provided.versions).join(', ');
  const without = leftOut > 0 ? `, ${leftOut} left out` : '';
  const took = `${seconds(Date.now() - ready)} (and ${seconds(ready - began)} to get it)`;
  console.log(
    `${name}: ${what} (${version}): ${passed} passed, ${failed} failed${without}; ${took}; ${suites.join(' ')}`,
  );
  return { name, passed, failed, failures: failures.map((failure) => `${what}: ${failure}`) };
};

/** Runs the rows one after the other: each uses all cores. */
const runAll = (rows, { short, minutes, strict, report }) => {
  const end = minutes === undefined ? Infinity : Date.now() + Number(minutes) * 60_000;
  if (Number.isNaN(end)) throw new Error(`--minutes takes a number, not ${minutes}`);
  const results = rows.map((row) => {
    const { name } = row;
    const suites = short ? row.short : row.suites;
    if (short && row.installed?.()) return { name, passed: 0, failed: 0, notRun: 'npm test runs on it' };
    if (!suites) return { name, passed: 0, failed: 0, notRun: 'not in the short run' };
    if (Date.now() >= end)
      return { name, passed: 0, failed: 0, notRun: `no time left of ${minutes} minutes` };
    return runRow(row, suites);
  });
  const total = (what) => results.reduce((sum, row) => sum + row[what], 0);
  const missing = results.filter((row) => row.notRun);
  const notRun =
    missing.length > 0
      ? `matrix: not run: ${missing.map(({ name, notRun: why }) => `${name} (${why})`).join('; ')}`
      : '';
  if (report) {
    const failures = results.flatMap((row) => row.failures ?? []);
    const counts = { passed: total('passed'), failed: total('failed'), failures, notRun };
    writeFileSync(report, JSON.stringify(counts));
  }
  console.log('');
  if (notRun) console.log(notRun);
  console.log(
    `matrix: ${total('passed')} passed, ${total('failed')} failed, in ${results.length - missing.length} rows`,
  );
  const failed = total('failed') > 0 || (strict && missing.length > 0);
  // If no requested row ran, the run has tested nothing.
  process.exitCode = failed || (!short && missing.length === results.length) ? 1 : 0;
};

try {
  const { values } = parseArgs({ options: OPTIONS });
  const rows = chosen(values);
  if (values.list) list(rows);
  else runAll(rows, values);
} catch (error) {
  console.error(`matrix: ${error.message}`);
  process.exitCode = 1;
}
