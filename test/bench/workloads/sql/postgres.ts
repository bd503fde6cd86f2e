import { tmpdir } from 'node:os';
import { migrationOf } from '../../../../lib/stores/postgres/postgres-migration.js';
import { PostgresServer } from '../../../support/servers/postgres-server.js';
import { cpuUsOfProcess } from '../../measure/server-cpu.js';
import { contendersOf, type Entrants } from './entrants.js';

export const POSTGRES: Entrants = {
  id: 'postgres',
  title: 'PostgreSQL',
  ...contendersOf('PostgresStore', 'postgres-by-hand', ['FOR UPDATE', 'pg_advisory_lock']),
  shows:
    'The database is a real PostgreSQL on a disk, and commits wait for that disk (`synchronous_commit = on`), except that of a ' +
    'release of PostgresStore. PostgresStore and ShedLock commit twice for each lock, with prepared statements. The server counts ' +
    'statements with `pg_stat_statements`.',
  doesNotShow: 'A pooler, a synchronous standby, and a network in between: they make each commit slower.',
  targets: { ofShedLock: 1, rate: 5_000, handOverMs: 3, ofFewProcesses: 0.5, statements: 6 },
  async start() {
    const server = await PostgresServer.start({
      root: tmpdir(),
      args: ['shared_preload_libraries=pg_stat_statements', 'max_connections=400'],
    });
    await server.admin('CREATE EXTENSION pg_stat_statements');
    const owner = await server.adminConnection('app');
    await owner.query(`SET ROLE app; ${migrationOf('nest_lock')}`);
    await owner.end();
    return {
      uri: server.uri,
      async statements() {
        const [row] = await server.admin('SELECT sum(calls) AS calls FROM pg_stat_statements');
        return Number(row!['calls']);
      },
      cpuUs: () => cpuUsOfProcess(server.pid),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};
