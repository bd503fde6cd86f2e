import { tmpdir } from 'node:os';
import { MysqlServer } from '../../../support/mysql/mysql-server.js';
import { BY_HAND, type Contender } from '../../contenders.js';
import { WAIT_MS } from '../../measure/contended.js';
import type { SubjectWorker } from '../../processes/subject-worker.js';
import type { Bench } from '../../workload.js';

/** Connections of everything that has a pool. */
const CONNECTIONS = 10;

export const MYSQL: Contender = { ...BY_HAND, name: `MysqlStore, ${CONNECTIONS} lanes` };
export const FOUR_LANES: Contender = { ...BY_HAND, name: 'MysqlStore, 4 lanes (the default)' };
export const REDIS: Contender = { ...BY_HAND, name: 'RedisStore' };

const byHand = (style: string): Contender => ({
  ...{ name: style, subject: 'mysql-by-hand', style },
  renews: false,
});

export const GET_LOCK = byHand('GET_LOCK');
export const FOR_UPDATE = byHand('FOR UPDATE');
/** Its statements, without Java. */
export const SHEDLOCK: Contender = { ...byHand('ShedLock'), name: 'the way of ShedLock' };

/** Starts a database whose commits wait for the disk, as they do in an app. */
export const startMysql = async (): Promise<MysqlServer> => {
  const server = await MysqlServer.start({ root: tmpdir() });
  await server.migrate();
  return server;
};

/** Returns processes of a contender, on Redis or on the database. */
export const workersOf = (
  { crew, server }: Bench,
  database: MysqlServer,
  contender: Contender,
  count: number,
): Promise<readonly SubjectWorker[]> =>
  crew.of(contender, count, {
    url: contender === REDIS ? server.url : database.uri,
    waitMs: WAIT_MS,
    ...(contender !== REDIS && contender !== FOUR_LANES && { connections: CONNECTIONS }),
  });
