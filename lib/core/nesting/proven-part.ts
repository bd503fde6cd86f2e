import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { Lease } from '../lease/lease.js';
import { LeasePart } from '../lease/lease-part.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { Wait } from '../wait/wait.js';
import { SiblingQueue, type SiblingsHost } from './sibling-queue.js';

/**
 * Returns the innermost part of a key that a call is proven inside of. It may be lost, but not released. If one lease is
 * nested in another, the part is the one of the inner lease: in the outer one, the call would wait for its own caller.
 *
 * @param leases proof of the call: leases that its caller passed
 * @param scope service instance of the call; leases of another one prove nothing
 */
export const provenPart = (leases: readonly Lease[], scope: object, key: string): LeasePart | undefined => {
  let found: LeasePart | undefined;
  // A set is iterated with what is added meanwhile: the leases around one without such a part.
  const visited = new Set(leases);
  for (const lease of visited) {
    const part = lease.isOf(scope) ? lease.parts.find((one) => one.key === key) : undefined;
    if (!part || part.state === 'released' || lease.hasEnded) {
      for (const outer of lease.outer) visited.add(outer);
    } else if (!found || part.isInside(found)) {
      found = part;
    }
  }
  return found;
};

/** Returns whether a call of a kind may enter a hold of another kind, or of its own. */
export const mayEnter = (kind: LockKind, { hold }: LeasePart): boolean =>
  kindOf(kind).reentrantInto.includes(hold.claim.kind);

/**
 * Enters a part of an outer lease, after the nested calls before this one. Resolves with undefined when its lock was lost
 * or released meanwhile. The section of that lease does not end before the calls inside have left.
 */
export const enterPart = async (
  outer: LeasePart,
  wait: Wait,
  host: SiblingsHost & { readonly keeper: LeaseKeeper },
): Promise<LeasePart | undefined> => {
  const siblings = (outer.siblings ??= new SiblingQueue(outer.hold));
  if (!(await siblings.enter(wait, host))) return undefined;
  host.keeper.checkExpiry(outer.hold);
  if (outer.state !== 'held') {
    siblings.leave();
    return undefined;
  }
  const part = new LeasePart(wait.key, outer.finalKey, outer.hold, outer, wait.label);
  siblings.admitted(part);
  return part;
};
