import type { CoreContext } from './core-context.js';
import { LockConfigurationError } from './errors/lock.errors.js';
import type { InspectedKey } from './holders/holders.js';
import type { KeyState, PermitState } from './seam/reply.js';

type Core = Pick<CoreContext, 'holders' | 'requests' | 'settings' | 'store'>;

/** Resolves with the state of a key in the store; null when it is free. */
export const stateOf = ({ requests, settings, store }: Core, key: string): Promise<KeyState | null> =>
  requests.request(key, 'inspecting', () => store.inspect(settings.keyPrefix + key));

/** Resolves with the state of a key and the processes behind its holders; null when it is free. */
export const inspectKey = async (core: Core, key: string): Promise<InspectedKey | null> => {
  const state = await stateOf(core, key);
  return state && (await core.holders.describe([state]))[0]!;
};

/**
 * Resolves with the permits of a key; null without a number of them.
 *
 * @throws LockConfigurationError when the store keeps no number
 */
export const permitsOf = async (
  { requests, settings, store }: Core,
  key: string,
): Promise<PermitState | null> => {
  if (!store.permits)
    throw new LockConfigurationError(
      `${store.name} keeps no number of permits. locks.inspect(key) lists their holders.`,
    );
  return requests.request(key, 'inspecting', () => store.permits!(settings.keyPrefix + key));
};

/** Asks the holders of a key to release it. Resolves with whether there was one. */
export const revokeKey = async (core: CoreContext, key: string): Promise<boolean> => {
  const revoke = core.revocations.checkStore();
  return core.requests.request(key, 'revoking', () => revoke(core.settings.keyPrefix + key));
};
