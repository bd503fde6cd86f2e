import {
  canFetchZooKeeper,
  fetchZooKeeper,
  ZOOKEEPER_FETCH,
  zookeeperClassPath,
} from '../../../../.ci/zookeeper.mjs';
import { MAX_CHARGES_AT_ONCE } from '../../payment/payment.client.js';
import { onPath, startServer } from '../backends.js';
import { given } from '../given.js';
import { UsageError } from '../options.js';
import { openLocks, type StoreOfDemo } from './lock-desk.js';

const EXAMPLE = 'zk1:2181,zk2:2181,zk3:2181';

/** Not an address with a scheme or a password, which the output would show. */
const isConnectString = (text: string): boolean => !/:\/\/|@/.test(text);

export const zookeeper: StoreOfDemo = {
  title: 'ZooKeeper',
  remark:
    `It has no permits: with other stores at most ${MAX_CHARGES_AT_ONCE} charges run at once, here any number. A dead ` +
    'process loses its locks with its session: after two seconds, or after minSessionTimeout of the server.',
  async findServer(parts) {
    const server = await given({
      title: 'ZooKeeper',
      variable: 'ZOOKEEPER_CONNECT',
      example: EXAMPLE,
      isAddress: isConnectString,
    });
    if (server) return server;
    const { java, classPath } = findPrograms();
    const part = './parts/zookeeper-server.part.js';
    const { url } = await startServer(parts, 'ZooKeeper server', part, java, classPath);
    return { url, description: `one server, started for this run with ${java}, at ${url}` };
  },
  // The server removes the nodes of the run: they are containers, and empty at its end.
  open: openLocks,
};

/** Fetches the jars when they are missing. That blocks, so it has to be before the start of other parts. */
const findPrograms = (): { readonly java: string; readonly classPath: string } => {
  const java = onPath('java');
  if (java && !zookeeperClassPath() && canFetchZooKeeper()) fetchJars();
  const classPath = zookeeperClassPath();
  if (java && classPath) return { java, classPath };
  throw new UsageError(
    `There is no ZooKeeper: set ZOOKEEPER_CONNECT to a server such as localhost:2181, or install ` +
      `${java ? 'Maven' : 'Java and Maven'} (Debian: apt-get install ${java ? '' : 'default-jre-headless '}maven).`,
  );
};

const fetchJars = (): void => {
  process.stderr.write(`Fetching the jars of ZooKeeper, once: ${ZOOKEEPER_FETCH} …\n`);
  try {
    fetchZooKeeper();
  } catch (error) {
    throw new UsageError(
      `There is no ZooKeeper: ${(error as Error).message}. Set ZOOKEEPER_CONNECT to a server such as localhost:2181.`,
    );
  }
};
