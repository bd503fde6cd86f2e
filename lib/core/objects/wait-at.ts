import { withStackFromHere } from '../errors/lock.errors.js';
import type { ObjectCall } from '../settings/object-call.js';
import type { Callers } from '../wait/callers.js';
import { UntilWon, type Ask } from '../wait/until-won.js';
import type { ObjectContext } from './object-context.js';

/** Waits at a semaphore or a latch until `ask` wins; see {@link UntilWon.run}. Throws the caller's error. */
export const waitAt = async (
  context: ObjectContext,
  key: string,
  call: ObjectCall,
  callers: Callers,
  ask: Ask,
): Promise<void> => {
  const wait = context.waitOf(key, call);
  try {
    await context.during(() => new UntilWon(context, wait, callers, ask).run());
  } catch (error) {
    throw withStackFromHere(context.core.waitCap.explain(error, call.waitMs));
  }
};
