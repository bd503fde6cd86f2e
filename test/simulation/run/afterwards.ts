import { AFTERWARDS } from '../../checker/rules/afterwards.rule.js';
import { errorSeen, type Mode } from '../../checker/history.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { Host } from './host.js';
import { ObjectUser } from '../../checker/object-user.js';
import { LeaseWatch } from './lease-watch.js';

/** How often a caller comes back to a store that fails, and after how long: a dead connection may be left. */
const TRIES = 4;
const PAUSE_MS = 300;

/** A key that somebody wanted; with a number when it is one of permits. */
export interface Wanted {
  readonly key: string;
  readonly permits: number | undefined;
  /** How it is taken when it is a read-write lock. */
  readonly mode: Mode | undefined;
}

/** The semaphores and latches that somebody used. */
export interface Objects {
  readonly semaphores: readonly string[];
  readonly latches: readonly string[];
}

/** A caller that comes when all is over. Undefined when the store failed: nothing is known then. */
const take = async (
  { process, manager, around, leases }: Host,
  { key, permits, mode }: Wanted,
  call: string,
): Promise<LeaseWatch | 'refused' | undefined> => {
  const { watchdogMs: leaseMs } = manager.settings;
  process.record({ type: 'call', call, keys: [key], waitMs: 0, style: AFTERWARDS, leaseMs, permits, mode });
  const kind = permits === undefined ? (mode ?? 'exclusive') : 'permit';
  const options = { ...around.core.defaultCall(manager.settings), waitMs: 0, kind, permits } as const;
  let lease: Lease;
  try {
    lease = await manager.acquire([key], options);
  } catch (error) {
    const seen = errorSeen(error);
    process.record({ type: 'refused', call, error: seen });
    return seen.code === 'LOCK_STORE_FAILED' ? undefined : 'refused';
  }
  const watch = new LeaseWatch(`L${call}`, lease, process, undefined, leases);
  watch.begin(call);
  return watch;
};

/** Takes all that there is of a key. False when the store failed. */
const takeAll = async (host: Host, wanted: Wanted, call: string): Promise<boolean> => {
  const taken: LeaseWatch[] = [];
  let replied = true;
  for (let i = 1; i <= (wanted.permits ?? 1) && replied; i++) {
    const watch = await take(host, wanted, `${call}.${i}`);
    replied = watch !== undefined;
    if (watch instanceof LeaseWatch) taken.push(watch);
  }
  for (const watch of taken) {
    watch.release();
    await watch.lease[Symbol.asyncDispose]();
  }
  return replied;
};

/** Takes each of the keys in this process once, and of permits as many as there are. */
export const takeAfterwards = async (host: Host, all: readonly Wanted[]): Promise<void> => {
  await Promise.all(
    all.map(async (wanted) => {
      for (let i = 1; i <= TRIES; i++) {
        if (await takeAll(host, wanted, `${host.process.name}after.${wanted.key}.${i}`)) return;
        await host.process.sleep(PAUSE_MS);
      }
    }),
  );
};

/** Looks once at what there is of each semaphore and latch. */
export const lookAfterwards = async (host: Host, { semaphores, latches }: Objects): Promise<void> => {
  const user = new ObjectUser(`${host.process.name}after`, host.objects);
  for (const key of semaphores) await user.look('semaphore', key);
  for (const key of latches) await user.look('latch', key);
};
