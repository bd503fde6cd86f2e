import { expect, it } from 'vitest';
import { useLab } from '../support/redis/lab.js';

const lab = useLab();

const KILLS = 25;
/** Without a pause between them no timer would be kept either: so the callers look at the clock. */
const TOO_LONG_MS = 20_000;

it('callers that try again at once let the process hear that the connection has gone, and is back', async () => {
  const { locks } = lab.open({ commandTimeoutMs: 2_000 });
  await locks.ping();
  let [kills, granted, grantedBefore] = [0, 0, 0];
  const killing = setInterval(() => {
    // Each time the connection is back, and works.
    if (granted === grantedBefore) return;
    grantedBefore = granted;
    kills += 1;
    void lab.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  }, 20);
  const startedAt = performance.now();
  const tryAgain = async (key: string): Promise<void> => {
    while (kills < KILLS && performance.now() - startedAt < TOO_LONG_MS) {
      await locks.withLock(key, () => (granted += 1)).catch(() => undefined);
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, i) => tryAgain(`order:${i}`)));
  clearInterval(killing);
  expect(kills, 'timers were kept').toBeGreaterThanOrEqual(KILLS);
}, 30_000);
