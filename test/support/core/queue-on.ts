import { SlowWaits } from '../../../lib/core/wait/slow-waits.js';
import { LocalQueue } from '../../../lib/core/acquire/local-queue.js';
import type { QueueHost } from '../../../lib/core/acquire/queue-host.js';
import { Outages } from '../../../lib/core/outage/outages.js';
import { Portions } from '../../../lib/core/util/portions.js';
import type { Runtime } from '../../../lib/core/util/runtime.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { ShownKey } from '../../../lib/core/util/shown-key.js';
import type { ScriptedStore } from './scripted-store.js';

export const claimOn = (finalKey: string, owner = `o-${finalKey}`, leaseMs = 30_000): Claim => ({
  kind: 'exclusive',
  finalKey,
  owner,
  leaseMs,
  tokens: 1,
  waits: true,
});

/** A queue's host, as far as the test wants to have a hand in it. */
type HostOfQueue = Partial<Pick<QueueHost<LocalQueue>, 'singleHolder' | 'onIdle' | 'leaveQueue'>>;

/** A local queue that listens on a scripted store. */
export const queueOn = (store: ScriptedStore, runtime: Runtime, host: HostOfQueue = {}): LocalQueue =>
  new LocalQueue(
    {
      runtime,
      maxWaiters: Infinity,
      shown: (key) => key as ShownKey,
      singleHolder: true,
      keepAlive: () => undefined,
      lookAt: () => undefined,
      watch: (claim, listener) => store.watch(claim, listener),
      outages: new Outages(runtime, 'process'),
      portions: new Portions(runtime),
      slowWaits: new SlowWaits({ runtime, slowWaitMs: Infinity, report: () => undefined }),
      leaveQueue: () => undefined,
      isFull: () => false,
      onIdle: () => undefined,
      ...host,
    },
    'k',
  );
