import type { CoreContext } from '../context/core-context.js';

/** What a forced unlock uses of its service. */
type Core = Pick<CoreContext, 'finalKey' | 'keeper' | 'queues' | 'requests' | 'runtime' | 'store'>;

/** Ends all holds of a key, also those of this process. Resolves with true when there was one in the store. */
export const forceUnlock = async (core: Core, key: string): Promise<boolean> => {
  const { keeper, requests, runtime, store } = core;
  const finalKey = core.finalKey(key);
  const sentAt = runtime.now();
  const forced = core.queues.forcing(finalKey);
  const ended = await requests.request(key, 'unlocking', () => store.forceUnlock(finalKey));
  forced();
  for (const hold of keeper.all) {
    // A hold with a later request was acquired after the unlock, even if both replies are here. Renewals do not count:
    // after a broken connection they may come to the store before the unlock.
    if (hold.claim.finalKey === finalKey && hold.inStore.firstSentAt <= sentAt) hold.lose('force-unlocked');
  }
  return ended;
};
