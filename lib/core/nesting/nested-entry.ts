import type { Wait } from '../acquire/wait.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import { LeasePart } from '../lease/lease-part.js';
import { currentSection, type Section } from './section.js';
import { SiblingQueue, type SiblingsHost } from './sibling-queue.js';

/** Entry of a nested call into one key of an open section. */
export class NestedEntry {
  private readonly siblings: SiblingQueue;

  constructor(
    private readonly section: Section,
    readonly part: LeasePart,
  ) {
    this.siblings = part.siblings ??= new SiblingQueue(part.hold);
  }

  /**
   * Enters the section. Resolves with undefined when the lock was lost or released before the call could enter. The
   * section does not end before all entered calls have left.
   */
  async enter(
    wait: Wait,
    host: SiblingsHost & { readonly keeper: LeaseKeeper },
  ): Promise<LeasePart | undefined> {
    this.section.inside++;
    let admitted = false;
    try {
      admitted = await this.siblings.enter(wait, host);
    } finally {
      if (!admitted) this.section.left();
    }
    if (!admitted) return undefined;
    const { hold, finalKey } = this.part;
    host.keeper.checkExpiry(hold);
    if (this.part.state !== 'held') {
      this.leave();
      return undefined;
    }
    const part = new LeasePart(wait.key, finalKey, hold, this, wait.label);
    this.siblings.admitted(part);
    return part;
  }

  leave(): void {
    this.siblings.leave();
    this.section.left();
  }
}

/**
 * Returns the innermost entry to a key of this service, if the caller runs inside one. It may return a lost lock, but
 * no lock that was released by hand. If a nested section runs in the same lease again, the entry is the one in the
 * nested section: in the lease around it the caller would wait for itself.
 */
export const enclosingEntry = (scope: object, kind: LockKind, finalKey: string): NestedEntry | undefined => {
  const { reentrantInto } = kindOf(kind);
  if (reentrantInto.length === 0) return undefined;
  let found: { section: Section; part: LeasePart } | undefined;
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    for (const part of section.parts) {
      if (
        part.finalKey !== finalKey ||
        part.state === 'released' ||
        !reentrantInto.includes(part.hold.claim.kind)
      )
        continue;
      if (!found || part.isInside(found.part)) found = { section, part };
    }
  }
  return found && new NestedEntry(found.section, found.part);
};
