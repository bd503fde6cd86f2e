// Installs the peers that the benchmark compares with, when what is installed is not what their lockfile asks for.
// They are no dependencies of this repository: only `npm run bench` needs them.
import { installDependencies } from '../../../.ci/dependencies.mjs';
import { exclusively } from '../../../.ci/exclusive.mjs';

try {
  await exclusively(() => installDependencies('test/bench/peers'));
} catch (error) {
  console.error(`set-up of the benchmark: ${error.message}`);
  process.exitCode = 1;
}
