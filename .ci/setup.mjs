#!/usr/bin/env node
// Makes a checkout ready; does nothing if it is. Plain Node: it runs before anything is installed. For what the machine
// itself needs, see machine.mjs.
//
//   node .ci/setup.mjs             installs development dependencies
//   node .ci/setup.mjs --build     also builds dist/, if a source has changed
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
