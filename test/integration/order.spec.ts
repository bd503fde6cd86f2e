import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';
import { TestWorker } from '../support/worker.js';
import type { CrowdSetup, FromCrowd, ToCrowd } from './workers/crowd.worker.js';

const CROWD = new URL('./workers/crowd.worker.ts', import.meta.url);
const GRANTS = 600;

const lab = useLab();

type Crowd = TestWorker<ToCrowd, FromCrowd>;

const startCrowd = async (setup: Omit<CrowdSetup, 'redis'>): Promise<Crowd> => {
  const args = [JSON.stringify({ redis: lab.server.url, ...setup } satisfies CrowdSetup)];
  const crowd = TestWorker.start<ToCrowd, FromCrowd>(CROWD, { args });
  await crowd.next('ready');
  return crowd;
};

describe('callers of one process', () => {
  it('are served in the order in which they came, from before there is a connection', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const order: number[] = [];
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.withLock(key, () => order.push(i))));
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order).toHaveLength(50);
  });
});

describe('two processes with 50 callers each on one key, 2 ms of work', () => {
  it('share it: each gets at least 30% of the grants, never two callers are inside, and all callers are served', async () => {
    await using one = await startCrowd({ key: 'hot', callers: 50, workMs: 2, log: 'grants' });
    await using two = await startCrowd({ key: 'hot', callers: 50, workMs: 2, log: 'grants' });
    const crowds = [one, two];
    // Both processes wait when it begins.
    const lease = await lab.open().locks.acquire('hot');
    for (const crowd of crowds) crowd.send({ type: 'go' });
    await lab.subscribed('hot', crowds.length);
    await lease.release();
    await until(async () => (await lab.admin.llen('grants')) >= GRANTS, { timeoutMs: 25_000 });
    for (const crowd of crowds) crowd.send({ type: 'stop' });
    const ends = await Promise.all(crowds.map((crowd) => crowd.next('stopped')));

    // The holders in the order of the grants, since both processes contended.
    const all = (await lab.admin.lrange('grants', 0, -1)).map(Number);
    const contended = all.slice(Math.max(all.indexOf(one.pid), all.indexOf(two.pid)), GRANTS);
    const shares = [one.pid, two.pid].map(
      (pid) => contended.filter((grant) => grant === pid).length / contended.length,
    );
    expect(contended.length).toBeGreaterThan(GRANTS / 2);
    expect(Math.min(...shares), `shares ${shares.join(' and ')}`).toBeGreaterThanOrEqual(0.3);
    for (const { overlaps, unserved, errors } of ends) {
      expect({ overlaps, unserved, errors }).toEqual({ overlaps: 0, unserved: 0, errors: [] });
    }
    await Promise.all(crowds.map((crowd) => crowd.finish()));
  });
});
