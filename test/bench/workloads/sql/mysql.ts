import { tmpdir } from 'node:os';
import { MysqlServer } from '../../../support/servers/mysql-server.js';
import { cpuUsOfProcess } from '../../measure/server-cpu.js';
import { contendersOf, type Entrants } from './entrants.js';

export const MYSQL: Entrants = {
  id: 'mysql',
  title: 'MySQL',
  ...contendersOf('MysqlStore', 'mysql-by-hand', ['FOR UPDATE', 'GET_LOCK']),
  shows:
    'The database is a real MariaDB on a disk, and each commit waits for that disk (`innodb_flush_log_at_trx_commit = 1`, no ' +
    'binlog). MysqlStore and ShedLock commit twice for each lock. ShedLock sends its statements as text, as the driver of Java ' +
    'does by default; MysqlStore prepares them.',
  doesNotShow: 'A binlog, and a network in between: both make each commit slower.',
  targets: { ofShedLock: 0.85, handOverMs: 8, ofFewProcesses: 0.8, statements: 10 },
  async start() {
    const server = await MysqlServer.start({ root: tmpdir(), args: ['--max-connections=1000'] });
    await server.migrate();
    return {
      uri: server.uri,
      async statements() {
        const [row] = await server.admin("SHOW GLOBAL STATUS LIKE 'Questions'");
        return Number(row!['Value']);
      },
      cpuUs: () => cpuUsOfProcess(server.pid),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};
