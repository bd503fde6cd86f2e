import { ZooKeeperServer } from '../support/zookeeper/zookeeper-server.js';
import { ZooKeeperStore } from '../../lib/zookeeper/index.js';
import { storeHost } from '../support/stores/store-host.js';
await using server = await ZooKeeperServer.start();
const store = new ZooKeeperStore({ connect: server.address });
const claim = (owner: string, waits = false) => ({ kind: 'exclusive' as const, finalKey: 'lock:a', owner, leaseMs: 30000, tokens: 1, waits });
console.log(await store.kinds.exclusive.acquire(claim('one')));
console.log(await store.kinds.exclusive.acquire(claim('two')));
const q = await store.kinds.exclusive.acquire(claim('three', true));
console.log(q.status, await store.inspect('lock:a'));
if (q.status === 'queued') q.entry.listen({ notified: (o) => console.log('notified', o), missedNotification: () => {} });
console.log(await store.kinds.exclusive.release(claim('one')));
console.log(await store.kinds.exclusive.release(claim('three')), await store.inspect('lock:a'));
for (const callers of [1, 100]) {
  const t = performance.now(); let n = 0;
  await Promise.all(Array.from({ length: callers }, async (_, c) => {
    for (let i = 0; performance.now() - t < 3000; i++) {
      const one = { ...claim(`o${callers}-${c}-${i}`, true), finalKey: `k${c}` };
      const r = await store.kinds.exclusive.acquire(one);
      if (r.status !== 'granted') throw new Error(r.status);
      await store.kinds.exclusive.release(one); n++;
    }
  }));
  console.log(callers, 'callers', Math.round(n / ((performance.now() - t) / 1000)), '/s');
}
await store.close();
