import { LocalQueue } from '../../../lib/core/acquire/local-queue.js';
import type { Runtime } from '../../../lib/core/runtime.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { ScriptedStore } from './scripted-store.js';

export const claimOn = (finalKey: string, owner = `o-${finalKey}`, leaseMs = 30_000): Claim => ({
  kind: 'exclusive',
  finalKey,
  owner,
  leaseMs,
  tokens: 1,
  waits: true,
});

/** A local queue that listens on a scripted store. */
export const queueOn = (
  store: ScriptedStore,
  runtime: Runtime,
  onIdle: () => void = () => undefined,
): LocalQueue =>
  new LocalQueue(
    {
      runtime,
      maxWaiters: Infinity,
      alone: true,
      keepAlive: () => undefined,
      watch: (claim, listener) => store.watch(claim, listener),
      onIdle,
    },
    'k',
  );
