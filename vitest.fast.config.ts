import { defineConfig } from 'vitest/config';
import everything from './vitest.config.js';

/**
 * The fast loop, `npm run test:fast`: what needs no server and no build. Everything else, and this again, is in
 * `npm test`.
 */
export default defineConfig({
  ...everything,
  test: {
    ...everything.test,
    projects: undefined,
    // Files share a process, and so the modules they import: more than half of the time went into importing them again.
    isolate: false,
    include: ['test/{checker,contract,mistakes,property,testing,types,unit}/**/*.spec.ts'],
    // These compare with a real server only.
    exclude: ['test/contract/{redis*,without-line}.spec.ts', 'test/unit/stores/hash-slot.spec.ts'],
    // Suites and tests that run for each store have its name in theirs.
    testNamePattern: /^(?!.*Redis ?[Ss]tore\b)/,
    // A test that is not left out and looks for a server finds none and fails, instead of making this loop slow.
    env: { PATH: '' },
  },
});
