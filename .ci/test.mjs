#!/usr/bin/env node
// `npm test`: sets up the machine and the checkout, then runs Vitest with the given arguments. If the machine lacks
// something that cannot be installed here, one line says so, the tests that do not need it run, and the exit code is 1.
// Without a file or a project, it leaves out the projects `gate`, which `.ci/run` adds, and `nightly-*`: `npm run
// test:mistakes` and its like. Plain Node: it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildIfChanged } from './build.mjs';
import { installDependencies } from './dependencies.mjs';
import { exclusively } from './exclusive.mjs';
import { setUpMachine } from './machine.mjs';
import { root } from './process.mjs';

/** The projects of `npm test`. */
const PROJECTS = ['fast', 'tests', 'laboratory', 'installs'];

try {
  const missing = await setUpMachine();
  await exclusively(() => {
    installDependencies();
    buildIfChanged();
  });
  // The fast tests are the tests that need no server.
  const args = process.argv.slice(2);
  const isAll = !args.some((arg) => !arg.startsWith('-') || arg.startsWith('--project'));
  if (missing.some(({ required }) => required)) args.unshift('--project', 'fast');
  else if (isAll) args.push(...PROJECTS.map((name) => `--project=${name}`));
  if (!args.some((arg) => arg.startsWith('--reporter'))) args.push('--reporter=default');
  args.push(`--reporter=${join(root, '.ci', 'run-reporter.mjs')}`);
  const vitest = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run'];
  const { status, error } = spawnSync(process.execPath, [...vitest, ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (error) throw error;
  for (const { name, without } of missing) console.error(`npm test failed: ${name} is missing; ${without}`);
  process.exitCode = missing.length > 0 ? 1 : (status ?? 1);
} catch (error) {
  console.error(`npm test: ${error.message}`);
  process.exitCode = 1;
}
