// The layers of the library: decorator -> key -> service -> core <- stores. `npm run deps` enforces the direction.
const { dependencies, peerDependencies } = require('./package.json');

const escaped = (name) => name.replace(/[/\-.]/g, '\\$&');
const packages = (...names) => `^node_modules/(@types/)?(${names.map(escaped).join('|')})(/|$)`;
const published = packages(...Object.keys({ ...dependencies, ...peerDependencies }));

/** Rooms of lib/core. A room imports only rooms before it, and the rooms in BACK. */
const ROOMS =
  'util kinds seam errors report holders settings lease outage wait nesting context objects acquire service'.split(
    ' ',
  );
const BACK = {
  settings: ['lease'],
  lease: ['nesting', 'context'],
  context: ['acquire'],
};

const STAGES = '^test/(checker|faults|mistakes|simulation)/';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Two files that import each other are one file in two pieces, or one is in the wrong layer.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'resolvable',
      comment: 'An import that cannot be resolved breaks when it is loaded.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-nest-below-the-service',
      comment: 'core, key and stores are plain TypeScript: they must be usable and testable without Nest.',
      severity: 'error',
      from: { path: '^lib/(core|key|stores)/' },
      to: { path: '^node_modules/@nestjs/' },
    },
    {
      name: 'core-stands-alone',
      comment:
        'The core knows no store, no Redis, no key templates and no Nest: it imports only itself and Node.',
      severity: 'error',
      from: { path: '^lib/core/' },
      to: { pathNot: '^lib/core/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'core-has-no-node-io',
      comment:
        'The core is driven from outside, by a clock and a store. Of Node it needs only contexts, events and channels.',
      severity: 'error',
      from: { path: '^lib/core/', pathNot: '^lib/core/(util/runtime|holders/this-process)\\.ts$' },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?(async_hooks|diagnostics_channel|events)$' },
    },
    {
      name: 'each-file-has-a-room',
      comment: 'Only index.ts stands at the root of lib/, and no file at the root of lib/core/.',
      severity: 'error',
      from: { path: '^lib/(core/)?[^/]+\\.ts$', pathNot: '^lib/index\\.ts$' },
      to: {},
    },
    ...ROOMS.slice(0, -1).map((room, at) => ({
      name: `core-${room}-imports-earlier-rooms`,
      severity: 'error',
      from: { path: `^lib/core/${room}/` },
      to: {
        path: `^lib/core/(${ROOMS.slice(at + 1).join('|')})/`,
        pathNot: (BACK[room] ?? []).map((one) => `^lib/core/${one}/`),
      },
    })),
    {
      name: 'key-stands-alone',
      comment: 'Key templates need the errors of the core and a parser, nothing else.',
      severity: 'error',
      from: { path: '^lib/key/' },
      to: {
        pathNot: ['^lib/key/', '^lib/core/errors/lock\\.errors\\.ts$', packages('acorn')],
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'store-imports-only-core',
      comment: 'A store imports itself, core and what stores have in common, and no other store.',
      severity: 'error',
      from: { path: '^lib/stores/([^/]+)/' },
      to: {
        pathNot: [
          '^lib/core/',
          '^lib/stores/($1/|load/|sql/|(?:key-rule|key-pages|proposed-token)\\.ts$)',
          published,
        ],
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'ioredis-only-in-the-redis-store',
      comment:
        'Only stores/redis talks to ioredis. The options of the module may name its types, and what makes a store of options ' +
        'finds out whether it is installed.',
      severity: 'error',
      from: { path: '^lib/', pathNot: ['^lib/stores/redis/', '^lib/nest/module/store-of-options\\.ts$'] },
      to: { path: packages('ioredis'), dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-ioredis-in-other-stores',
      comment: 'Other stores do not even know its types.',
      severity: 'error',
      from: { path: '^lib/(stores|core|key)/', pathNot: '^lib/stores/redis/' },
      to: { path: packages('ioredis') },
    },
    {
      name: 'stores-are-chosen-at-the-top',
      comment:
        'Everything else gets a store handed in: only what makes one of options, and the subpaths import one.',
      severity: 'error',
      from: {
        path: '^lib/',
        pathNot: [
          '^lib/stores/',
          '^lib/entries/',
          '^lib/nest/module/[^/]+\\.options\\.ts$',
          '^lib/nest/module/store-of-options\\.ts$',
          '^lib/testing/',
        ],
      },
      to: { path: '^lib/stores/' },
    },
    {
      name: 'options-name-only-types-of-stores',
      comment: 'The options of the module may describe what a store is made from, but not make one.',
      severity: 'error',
      from: { path: '^lib/nest/module/redis-lock\\.options\\.ts$' },
      to: { path: '^lib/stores/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'library-imports-no-app-and-no-test',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(sample-app|test)/' },
    },
    {
      name: 'app-imports-the-package',
      comment: 'The sample app uses nest-redis-lock as its users do, by its name, and never a file of lib/.',
      severity: 'error',
      from: { path: '^sample-app/' },
      to: { path: '^(lib|test)/', dependencyTypes: ['local'], dependencyTypesNot: ['aliased'] },
    },
    {
      name: 'library-imports-what-users-install',
      comment:
        'A package imported by the library is in dependencies or peerDependencies, or it is missing at users.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { pathNot: ['^lib/', '^(sample-app|test)/', published], dependencyTypesNot: ['core'] },
    },
    {
      name: 'test-trees-stand-alone',
      comment:
        'What two folders of test/ need is in test/support/, which imports none of them. So each can be read, moved and ' +
        'run by itself.',
      severity: 'error',
      from: { path: '^test/([^/]+)/', pathNot: STAGES },
      to: { path: '^test/', pathNot: ['^test/$1/', '^test/support/'] },
    },
    {
      name: 'stages-of-the-checker-stand-alone',
      comment:
        'The simulation and the fault laboratory are two stages for the same mistakes, judged by the same checker. These ' +
        'four are one piece.',
      severity: 'error',
      from: { path: STAGES },
      to: { path: '^test/', pathNot: [STAGES, '^test/support/'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|test/package/apps)/' },
    // Imports of types count: a layer that names another one's types depends on it.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      mainFields: ['module', 'main', 'types', 'typings'],
    },
  },
};
