// Arguments: the servers, the path of a lock, and the time-out of the session in ms.
// Acquires the lock, says so, and holds it until it is killed.
import { ZooKeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { openLocksOn } from '../../support/stores/open-locks-on.js';

const [connect, path, sessionTimeoutMs] = process.argv.slice(2);
const store = new ZooKeeperStore({
  ...{ connect: connect!, path: (key) => key },
  sessionTimeoutMs: Number(sessionTimeoutMs),
});
const { locks } = openLocksOn(store, { keyPrefix: '' });
await locks.acquire(path!);
process.stdout.write('held\n');
