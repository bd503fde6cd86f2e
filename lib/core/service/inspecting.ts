import type { CoreContext } from '../context/core-context.js';
import { LockConfigurationError } from '../errors/lock.errors.js';
import type { InspectedKey } from '../holders/holders.js';
import type { KeyState, PermitState } from '../seam/reply.js';

/** Resolves with the state of a key in the store; null when it is free. */
export const stateOf = (core: CoreContext, key: string): Promise<KeyState | null> => {
  const finalKey = core.finalKey(key);
  return core.requests.request(key, 'inspecting', () => core.store.inspect(finalKey));
};

/** Resolves with the state of a key and the processes behind its holders; null when it is free. */
export const inspectKey = async (core: CoreContext, key: string): Promise<InspectedKey | null> => {
  const state = await stateOf(core, key);
  return state && (await core.holders.describe([state]))[0]!;
};

/**
 * Resolves with the permits of a key; null without a number of them.
 *
 * @throws LockConfigurationError when the store keeps no number
 */
export const permitsOf = async (core: CoreContext, key: string): Promise<PermitState | null> => {
  const { requests, store } = core;
  const finalKey = core.finalKey(key);
  if (!store.permits)
    throw new LockConfigurationError(
      `${store.name} keeps no number of permits. locks.inspect(key) lists their holders.`,
    );
  return requests.request(key, 'inspecting', () => store.permits!(finalKey));
};

/** Asks the holders of a key to release it. Resolves with whether there was one. */
export const revokeKey = async (core: CoreContext, key: string): Promise<boolean> => {
  const revoke = core.revocations.checkStore();
  const finalKey = core.finalKey(key);
  return core.requests.request(key, 'revoking', () => revoke(finalKey));
};
