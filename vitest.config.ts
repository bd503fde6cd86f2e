import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { fromOtherPackages } from './test/support/other-packages/vite-plugin.js';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [fromOtherPackages()],
  resolve: {
    alias: [
      { find: 'nest-redis-lock/testing', replacement: source('./lib/testing/index.ts') },
      { find: 'nest-redis-lock', replacement: source('./lib/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.spec.ts'],
    exclude: ['test/package/apps/**', 'node_modules/**'],
    // Processes, not threads: tests send signals and watch for what a process leaves behind.
    pool: 'forks',
    maxWorkers: 2,
    allowOnly: false,
    retry: 0,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    coverage: { provider: 'v8', include: ['lib/**/*.ts'] },
  },
});
