import type { CoreContext } from '../core-context.js';
import type { Hold } from './hold.js';

/** How soon to ask again a store that failed, in ms. */
const RETRY_MS = 1_000;

/** The requests under way that cut a hold. */
const underWay = new WeakMap<Hold, Promise<void>>();

/** Resolves when no cut of the hold is under way: a longer time that is asked for has to come behind it. */
export const cutsOver = (hold: Hold): Promise<void> | undefined => underWay.get(hold);

/**
 * Cuts a hold to what its remaining leases asked for, after one that asked for more has ended. Never throws: a store that
 * failed is asked again, until the hold is over or lasts no longer than that.
 */
export const cutToWanted = (core: CoreContext, hold: Hold): Promise<void> => {
  const before = underWay.get(hold);
  const cutting = before ? before.then(() => cut(core, hold)) : cut(core, hold);
  underWay.set(hold, cutting);
  return cutting.finally(() => {
    if (underWay.get(hold) === cutting) underWay.delete(hold);
  });
};

const cut = async (core: CoreContext, hold: Hold): Promise<void> => {
  const { keeper, requests, runtime } = core;
  const sentAt = runtime.now();
  const keepForMs = hold.wantedMs(sentAt);
  if (keepForMs === undefined) return;
  hold.cut(sentAt, keepForMs);
  keeper.schedule(hold);
  try {
    const reply = await requests.release(hold.claim, { keepForMs, continues: true });
    const now = runtime.now();
    hold.cutOver(now + keepForMs);
    requests.answered();
    if (hold.state !== 'held') return;
    if (now >= hold.validUntil) hold.lose('expired');
    else if (!reply.wasHeld) hold.lose(reply.entered ? 'entered' : 'refused');
    else hold.confirm(sentAt, keepForMs);
  } catch (failure) {
    hold.cutOver(undefined);
    requests.failed(failure);
    runtime.setTimer(() => void cutToWanted(core, hold), RETRY_MS, true);
  }
};
