import { it } from 'vitest';
import { until } from '../../support/async.js';
import { Lab, newKey } from '../scenarios/lab.js';
it('dbg', async () => {
  await using lab = await Lab.start();
  const key = newKey();
  const proxy = await lab.proxy();
  const holder = lab.open();
  const lease = await holder.locks.acquire(key);
  const waiter = lab.open({ waitMs: 60_000, commandTimeoutMs: 500 }, proxy.url);
  const t0 = performance.now();
  proxy.onData((c, d, chunk) =>
    console.log((performance.now() - t0).toFixed(0), c.id, d, JSON.stringify(chunk.toString().slice(0, 120))),
  );
  const wait = waiter.locks.acquire(key);
  await lab.waiting(key);
  await waiter.locks.ping();
  console.log('REFUSE');
  proxy.refuse();
  proxy.find('redisson_lock__channel').at(-1)!.cut();
  await until(async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).length === 0);
  console.log('RELEASE');
  await lease.release();
  const l = await wait;
  console.log('GOT', (performance.now() - t0).toFixed(0));
  await l.release();
});
