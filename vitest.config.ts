import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { fromOtherPackages } from './test/support/other-packages/vite-plugin.js';
import { PROPERTY_TIMEOUT_MS } from './test/support/property/runs.js';
import { SlowestFirst } from './test/support/slowest-first.js';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The fast loop, `npm run test:fast`: tests that need no server and no build. Folders `on-redis` hold tests that do. */
const FAST = ['*.spec.ts', '**/!(on-redis)/*.spec.ts'].map(
  (files) => `test/{checker,contract,mistakes,property,testing,types,unit}/${files}`,
);

/** A short round on each store; and all kinds of faults on all topologies: `npm run test:laboratory`, once a night. */
const LABORATORY = ['test/faults/each-store.spec.ts'];
const WHOLE_LABORATORY = ['test/faults/{faults,many,databases,zookeeper}.spec.ts'];

/**
 * What `.ci/run` has beside `npm test`: the contract on a cluster, more of the sample app, whole apps that npm installs, the
 * soak, and processes that lead. Tests of the scripts and of the tests' own tools, other versions beside this one, and a
 * process that asks for more than its store serves, are there, too. So are the page of the sample app and the site of `docs/`,
 * in a real browser.
 */
const GATE = [
  'test/contract/on-redis/cluster.spec.ts',
  'test/docs/site.spec.ts',
  'test/e2e/flash-sale-{page,serve,stores}.spec.ts',
  'test/faults/on-{redis,sql}/mistakes.spec.ts',
  'test/faults/{topology,versions}/*.spec.ts',
  'test/integration/leader/leader.spec.ts',
  'test/package/{migration,nest-11,nest-12}.spec.ts',
  'test/repository/*.spec.ts',
  'test/settings/*.spec.ts',
  'test/soak/*.spec.ts',
  'test/support/**/*.spec.ts',
  'test/simulation/{overload/overload,programs/programs}.spec.ts',
];
/** A round of the laboratory on each topology of Redis, in `.ci/run`, too. */
const GATE_LABORATORY = ['test/faults/each-topology.spec.ts'];

/** Apps with further versions and libraries: `npm run test:installs`, once a night. */
const INSTALLS = [
  'test/package/{builds,fresh-clone,http-only,job-queue,nest-10,nest-12-jest,no-redis,opentelemetry,terminus}.spec.ts',
];

/** Thousands of seeds of the other simulations: `npm run test:seeds`, once a night. */
const SEEDS = ['test/simulation/{quorum/quorum,sql/sql,zookeeper/zookeeper}.spec.ts'];

/** Whether simulation and laboratory notice deliberate mistakes: `npm run test:mistakes`, once a night. */
const MISTAKES = [
  'test/simulation/{,quorum/,sql/,zookeeper/}mistakes.spec.ts',
  'test/faults/{mistakes,mistakes-many}.spec.ts',
];

/** A process that asks for much more than its store serves, for minutes: `npm run test:overload`, once a night. */
const OVERLOAD = ['test/simulation/overload/on-servers/*.spec.ts'];

/** Whole sales of the sample app on the stores that the gate leaves out: `npm run test:sale`, once a night. */
const SALE = ['test/e2e/nightly/*.spec.ts'];

export default defineConfig({
  plugins: [fromOtherPackages()],
  resolve: {
    alias: [
      { find: /^nest-redis-lock\/([^/]+)$/, replacement: `${source('./lib/entries/')}$1.ts` },
      { find: 'nest-redis-lock', replacement: source('./lib/index.ts') },
    ],
  },
  test: {
    // One after the other: npm installing whole apps keeps the disk busy, and what is beside it sees its time-outs. And
    // the laboratory has a dozen processes of its own, whose promises it cannot judge while others have the processors.
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: FAST,
          setupFiles: ['test/support/ended-timers.ts'],
          // A test that looks for a server finds none and fails, instead of making this loop slow.
          env: { PATH: '' },
          testTimeout: PROPERTY_TIMEOUT_MS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'tests',
          globalSetup: ['test/support/typescript/compile-all.mjs'],
          include: ['test/**/*.spec.ts'],
          exclude: [
            ...FAST,
            ...LABORATORY,
            ...WHOLE_LABORATORY,
            ...GATE,
            ...GATE_LABORATORY,
            ...MISTAKES,
            ...OVERLOAD,
            ...SALE,
            'test/{interop,package}/**',
            'node_modules/**',
          ],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'laboratory',
          include: LABORATORY,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'nightly-laboratory',
          include: WHOLE_LABORATORY,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'nightly-mistakes',
          include: MISTAKES,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'nightly-overload',
          include: [...OVERLOAD, 'test/simulation/overload/*.spec.ts'],
          env: { OVERLOAD_CALLERS: '10000' },
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'nightly-seeds',
          include: SEEDS,
          env: { QUORUM_SEEDS: '6000', SQL_SEEDS: '6000', ZOOKEEPER_SEEDS: '6000' },
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'nightly-sale',
          include: SALE,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'nightly-installs',
          include: INSTALLS,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'gate',
          include: GATE,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'gate-laboratory',
          include: GATE_LABORATORY,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'installs',
          maxWorkers: 2,
          include: ['test/package/*.spec.ts'],
          exclude: [...GATE, ...INSTALLS],
          sequence: { groupOrder: 2 },
        },
      },
    ],
    // Processes, not threads: tests send signals and watch for what a process leaves behind.
    pool: 'forks',
    // Files share a process, and so the modules they import: importing them again took a good part of the time.
    isolate: false,
    // More than the two processors: most of the time a test waits, for its server or for the end of a lease.
    maxWorkers: 4,
    sequence: { sequencer: SlowestFirst },
    // Vitest's own 50 ms would be most of a case of the contract.
    expect: { poll: { interval: 5 } },
    allowOnly: false,
    retry: 0,
    // A failure of one run in a hundred is seen once: its message says all that was found.
    chaiConfig: { truncateThreshold: 0 },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    coverage: { provider: 'v8', include: ['lib/**/*.ts'] },
  },
});
