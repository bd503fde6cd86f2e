import { defineConfig } from 'vitest/config';
import everything from './vitest.config.js';

/** The tests beside real Redisson and Curator, `npm run test:interop`: they need Maven and Java, and the processors for themselves. */
export default defineConfig({
  ...everything,
  test: {
    ...everything.test,
    projects: undefined,
    name: 'interop',
    include: ['test/interop/**/*.spec.ts'],
    maxWorkers: 1,
    testTimeout: 60_000,
    // Building the Java side downloads the Java clients the first time.
    hookTimeout: 400_000,
  },
});
