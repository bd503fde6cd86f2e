import { AFTERWARDS } from '../../checker/rules/afterwards.rule.js';
import { errorSeen } from '../../checker/history.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { Host } from './host.js';
import { LeaseWatch } from './lease-watch.js';

/** How often a caller comes back to a store that fails, and after how long: a dead connection may be left. */
const TRIES = 4;
const PAUSE_MS = 300;

/** A caller that comes when all is over. True when it has nothing more to find out. */
const take = async (
  { process, manager, around, leases }: Host,
  key: string,
  call: string,
): Promise<boolean> => {
  const { watchdogMs: leaseMs } = manager.settings;
  process.record({ type: 'call', call, keys: [key], waitMs: 0, style: AFTERWARDS, leaseMs });
  let lease: Lease;
  try {
    lease = await manager.acquire([key], { ...around.core.defaultCall(manager.settings), waitMs: 0 });
  } catch (error) {
    const seen = errorSeen(error);
    process.record({ type: 'refused', call, error: seen });
    return seen.code !== 'LOCK_STORE_FAILED';
  }
  const watch = new LeaseWatch(`L${call}`, lease, process, undefined, leases);
  watch.begin(call);
  watch.giveBack();
  await lease[Symbol.asyncDispose]();
  return true;
};

/** Takes each of the keys in this process once. */
export const takeAfterwards = async (host: Host, keys: readonly string[]): Promise<void> => {
  await Promise.all(
    keys.map(async (key) => {
      for (let i = 1; i <= TRIES; i++) {
        if (await take(host, key, `${host.process.name}after.${key}.${i}`)) return;
        await host.process.sleep(PAUSE_MS);
      }
    }),
  );
};
