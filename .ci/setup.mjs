#!/usr/bin/env node
// Makes a checkout ready, and does nothing where it already is. Plain Node: it runs before anything is installed.
// What the machine itself has to have is set up by machine.mjs.
//
//   node .ci/setup.mjs             development dependencies
//   node .ci/setup.mjs --build     and dist/, when a source changed
//
import { buildIfChanged } from './build.mjs';
import { installDependencies } from './dependencies.mjs';
import { exclusively } from './exclusive.mjs';

const steps = { '--build': buildIfChanged };
const flags = process.argv.slice(2);

try {
  const unknown = flags.filter((flag) => !Object.hasOwn(steps, flag));
  if (unknown.length > 0)
    throw new Error(`unknown option ${unknown.join(', ')}; there are ${Object.keys(steps).join(' and ')}`);
  await exclusively(() => {
    installDependencies();
    for (const flag of flags) steps[flag]();
  });
} catch (error) {
  console.error(`set-up: ${error.message}`);
  process.exitCode = 1;
}
