import type { CoreContext } from '../context/core-context.js';
import { formatValue } from '../util/describe.js';
import type { ReleaseReply } from '../seam/reply.js';
import { StoreFailure } from '../seam/store-failure.js';
import type { Hold } from './hold.js';

/** What shortening a hold uses of its service. */
type Core = Pick<CoreContext, 'keeper' | 'requests' | 'runtime'>;

/** Pause before a failed cut is retried, in ms. */
const RETRY_MS = 1_000;

/** Cuts of one hold: the one in progress, and the next one, which serves all leases that have ended since. */
interface Cuts {
  readonly now: Promise<void>;
  next?: Promise<void>;
}

const underWay = new WeakMap<Hold, Cuts>();
/** Holds whose cut will be retried. */
const failed = new WeakSet<Hold>();

/** Resolves when no cut of the hold is in progress: an extension has to be sent after it. */
export const cutsOver = (hold: Hold): Promise<void> | undefined => {
  const cuts = underWay.get(hold);
  return cuts?.next ?? cuts?.now;
};

/**
 * Shortens a hold to what its remaining leases requested, after a lease that had extended it has ended. Never throws: a
 * failed cut is retried until the hold has ended, or lasts no longer than that.
 */
export const cutToWanted = (core: Core, hold: Hold): Promise<void> => {
  const cuts = underWay.get(hold);
  if (!cuts) return begin(core, hold);
  // The next cut is sent after the one in progress. Its time is not to be relied on until then.
  const now = core.runtime.now();
  const keepForMs = hold.wantedMs(now);
  if (keepForMs !== undefined) {
    hold.inStore.relyUntil(now + keepForMs);
    core.keeper.schedule(hold);
  }
  return (cuts.next ??= cuts.now.then(() => begin(core, hold)));
};

const begin = (core: Core, hold: Hold): Promise<void> => {
  const now = cut(core, hold).finally(() => {
    if (cuts.next === undefined) underWay.delete(hold);
  });
  const cuts: Cuts = { now };
  underWay.set(hold, cuts);
  return now;
};

const cut = async (core: Core, hold: Hold): Promise<void> => {
  const { keeper, requests, runtime } = core;
  const sentAt = runtime.now();
  const keepForMs = hold.wantedMs(sentAt);
  if (keepForMs === undefined) return;
  hold.inStore.cut(sentAt, keepForMs);
  keeper.schedule(hold);
  if (hold.session) return hold.inStore.cutOver(undefined);
  let reply: ReleaseReply | undefined;
  try {
    reply = await requests.release(hold.claim, { keepForMs, continues: true, until: hold.validUntil });
    if (typeof reply?.wasHeld !== 'boolean')
      throw new StoreFailure(`the store replied ${formatValue(reply)} to a release`, 'unknown');
  } catch (failure) {
    hold.inStore.cutOver(undefined);
    requests.failed(failure);
    return tryAgain(core, hold);
  }
  const now = runtime.now();
  hold.inStore.cutOver(now + keepForMs);
  requests.replied();
  if (hold.state !== 'held') return;
  const over = hold.overBy(now);
  if (over) hold.lose(over);
  else if (!reply.wasHeld) hold.lose(reply.intruder ? 'entered' : 'refused');
  else hold.inStore.confirm(sentAt, keepForMs);
};

const tryAgain = (core: Core, hold: Hold): void => {
  if (failed.has(hold)) return;
  failed.add(hold);
  const again = (): void => {
    failed.delete(hold);
    void cutToWanted(core, hold);
  };
  core.runtime.setTimer(again, RETRY_MS, true);
};
