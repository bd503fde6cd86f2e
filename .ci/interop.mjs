#!/usr/bin/env node
// Runs the tests against real Redisson and Curator: `npm run test:interop`. They need Maven, Java, a Redis server, a ZooKeeper
// server and, the first time, downloads by Maven. If one of these is missing they do not run; one line says so, and it is no
// failure.
//
//   node .ci/interop.mjs                    2,000 increments of each lock, the older Redisson with a case for each object; then in a cluster
//   node .ci/interop.mjs --short            the newest Redisson, fewer increments, no shares
//   node .ci/interop.mjs --long             20,000 increments, everything on both versions
//   node .ci/interop.mjs --minutes 6        stops and fails if it takes longer
//   node .ci/interop.mjs test/interop/fair.spec.ts   passes further arguments to Vitest
//
// `--report=<file>` writes { "passed", "failed", "notRun": <a line> } as JSON.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { onPath, root } from './process.mjs';
import { readTestReport } from './test-report.mjs';
import { zookeeperClassPath } from './zookeeper.mjs';

const JAVA_PROJECT = join(root, 'test', 'interop', 'java');
/** The Java clients by the names of their files. */
const NAMES = { redisson: 'Redisson', curator: 'Curator' };
const DOWNLOAD_LIMIT_MS = 5 * 60_000;
/**
 * Tests that are left out of short runs and on clusters. Shares of the lock are measured for minutes, on a machine that
 * does nothing else; others download libraries.
 */
const NOT_SHORT = ['share', 'pollers', 'redlock'];
/** Tests that do not use Redis run once. */
const WITHOUT_REDIS = 'test/interop/curator/';
/** Kinds of Redis to test on, one after the other, as in test/interop/extent.ts. */
const SERVERS = ['one', 'cluster', 'cluster-unsharded'];
/** Tests on a cluster with --short: one kind with a wait queue, and one without. */
const SHORT_ON_CLUSTER = ['lock', 'permits'];
const USUAL_MINUTES = { short: 10, usual: 45, long: 300 };
/** Output of Maven when it could not reach a repository. Any other error is a failure of the tests. */
const OUT_OF_REACH =
  /could not transfer|unknown host|connection (refused|timed out|reset)|network is unreachable|in offline mode|during a previous attempt/i;

const OPTIONS = {
  short: { type: 'boolean' },
  long: { type: 'boolean' },
  minutes: { type: 'string' },
  report: { type: 'string' },
};

/** Returns the versions of a Java client, the newest first, from test/support/<client>/<client>-build.ts. */
const versionsOf = (client) => {
  const source = readFileSync(join(root, 'test', 'support', client, `${client}-build.ts`), 'utf8');
  return [...source.matchAll(/_(?:REDISSON|CURATOR) = '([\d.]+)'/g)].map(([, version]) => version);
};

/** Downloads what the build with a version needs. Returns why that failed; undefined when all is there. */
const download = (client, version) => {
  const what = `${NAMES[client]} ${version}`;
  const project = ['-f', `${client}.pom.xml`, `-D${client}.version=${version}`];
  const { status, error, stdout, stderr } = spawnSync(
    'mvn',
    ['-B', '-q', '-ntp', ...project, 'dependency:resolve-plugins', 'dependency:resolve'],
    { cwd: JAVA_PROJECT, encoding: 'utf8', timeout: DOWNLOAD_LIMIT_MS, killSignal: 'SIGKILL' },
  );
  if (error?.code === 'ETIMEDOUT')
    return `Maven could not download ${what} within ${DOWNLOAD_LIMIT_MS / 60_000} minutes`;
  if (error) throw error;
  if (status === 0) return undefined;
  const said = `${stdout}${stderr}`;
  if (OUT_OF_REACH.test(said)) return `Maven could not download ${what}`;
  throw new Error(`Maven cannot prepare test/interop/java:\n${said}`);
};

const missing = (extent) => {
  const programs = ['mvn', 'java'].filter((program) => !onPath(program));
  if (programs.length > 0) return `${programs.join(' and ')} missing on this machine`;
  for (const client of Object.keys(NAMES)) {
    const versions = versionsOf(client);
    for (const version of extent === 'short' ? versions.slice(0, 1) : versions) {
      const why = download(client, version);
      if (why) return why;
    }
  }
  return zookeeperClassPath() ? undefined : 'jars of ZooKeeper missing on this machine';
};

/**
 * Returns the tests to run on a kind of Redis: the named ones, or as many as the extent has time for. Undefined: none.
 */
const testsOn = (servers, extent, rest) => {
  const isOnce = rest.length > 0 && rest.every((argument) => argument.startsWith(WITHOUT_REDIS));
  if (rest.length > 0) return isOnce && servers !== 'one' ? undefined : rest;
  const specs = (names) => names.map((spec) => `test/interop/${spec}.spec.ts`);
  if (servers === 'one') return extent === 'short' ? specs(NOT_SHORT).map((spec) => `--exclude=${spec}`) : [];
  if (extent === 'short') return servers === 'cluster' ? specs(SHORT_ON_CLUSTER) : undefined;
  return [...specs(NOT_SHORT), `${WITHOUT_REDIS}**`].map((spec) => `--exclude=${spec}`);
};

const runAll = (extent, minutes, rest) => {
  const endsAt = Date.now() + minutes * 60_000;
  const sum = { passed: 0, failed: 0 };
  for (const servers of SERVERS) {
    const tests = testsOn(servers, extent, rest);
    if (!tests) continue;
    const { passed, failed } = runTests(extent, servers, endsAt - Date.now(), tests);
    sum.passed += passed;
    sum.failed += failed;
  }
  return sum;
};

const runTests = (extent, servers, leftMs, tests) => {
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-interop-'));
  const report = join(folder, 'report.json');
  const vitest = ['run', '--config', 'vitest.interop.config.ts', '--reporter=default', '--reporter=json'];
  try {
    const { status, error } = spawnSync(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', ...vitest, `--outputFile.json=${report}`, ...tests],
      {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit'],
        env: { ...process.env, TEST_INTEROP: extent, TEST_INTEROP_SERVERS: servers },
        timeout: Math.max(1, leftMs),
      },
    );
    if (error?.code === 'ETIMEDOUT') throw new Error('not done in time: --minutes gives it more');
    if (error) throw error;
    return readTestReport(report, status);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const main = () => {
  const { values, tokens } = parseArgs({ options: OPTIONS, strict: false, tokens: true });
  const own = new Set(
    tokens
      .filter(({ kind, name }) => kind === 'option' && Object.hasOwn(OPTIONS, name))
      .flatMap(({ index, inlineValue, value }) =>
        value === undefined || inlineValue ? [index] : [index, index + 1],
      ),
  );
  const rest = process.argv.slice(2).filter((_, index) => !own.has(index));
  if (values.short && values.long) throw new Error('--short and --long are two extents; give one of them');
  const extent = values.short ? 'short' : values.long ? 'long' : 'usual';
  const minutes = Number(values.minutes ?? USUAL_MINUTES[extent]);
  if (!(minutes > 0)) throw new Error(`--minutes has to be a number greater than 0, not ${values.minutes}`);
  const write = (result) => values.report && writeFileSync(values.report, JSON.stringify(result));
  const why = missing(extent);
  if (why) {
    const notRun = `test:interop did not run: ${why}`;
    console.log(notRun);
    write({ passed: 0, failed: 0, notRun });
    return;
  }
  const { passed, failed } = runAll(extent, minutes, rest);
  write({ passed, failed });
  if (failed > 0) process.exitCode = 1;
};

try {
  main();
} catch (error) {
  console.error(`test:interop: ${error.message}`);
  process.exitCode = 1;
}
