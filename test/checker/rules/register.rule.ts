import type { EventOf } from '../history.js';
import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';

/**
 * What the register accepted makes sense: no token below one it has seen, and no write based on anything but the
 * newest version, which would undo a write in between.
 */
export const register: Rule = function* (past): Generator<Violation> {
  const fences = new Map<string, number>();
  const versions = new Map<string, number>();
  const writers = new Map<string, EventOf<'register'>>();
  /** Whoever goes on with a lease that it has given back, or knows to be lost, is not alone inside a hold of others. */
  const wroteTooLate = ({ at, lease: id }: EventOf<'register'>): boolean => {
    const lease = past.leases.get(id);
    return lease !== undefined && at > Math.min(lease.ended, lease.announced);
  };
  for (const event of past.all('register')) {
    const { what, key, lease, token, accepted, base, version, at } = event;
    if (!accepted) continue;
    const fence = fences.get(key) ?? -Infinity;
    if (token < fence) {
      const text = `a ${what} of ${lease} with the token ${token} of "${key}" was accepted after ${fence}`;
      yield { rule: 'stale write', at, text };
    }
    fences.set(key, Math.max(fence, token));
    if (what !== 'write') continue;
    const newest = versions.get(key) ?? 0;
    const before = writers.get(key);
    writers.set(key, event);
    const ownFault = before?.token === token && (wroteTooLate(before) || wroteTooLate(event));
    if (base !== newest && !ownFault) {
      const text = `${lease} wrote "${key}" on top of version ${base} when ${newest} was the newest: an update is lost`;
      yield { rule: 'lost update', at, text };
    }
    versions.set(key, version);
  }
};
