import { AsyncLocalStorage } from 'node:async_hooks';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import { SiblingQueue } from './sibling-queue.js';
import type { Wait } from '../acquire/wait.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import { LeasePart } from '../lease/lease-part.js';
import { processWide } from '../process-wide.js';
import type { Runtime } from '../runtime.js';

/** One key of one open section, for a nested call that wants it. */
export class NestedEntry {
  private readonly siblings: SiblingQueue;

  constructor(
    private readonly section: Section,
    /** What the section has of the key. */
    readonly part: LeasePart,
  ) {
    this.siblings = part.siblings ??= new SiblingQueue(part.hold);
  }

  /**
   * Goes in. Undefined when the lock was lost or released before its turn came. The section does not end before
   * everyone who went in has left.
   */
  async enter(wait: Wait, keeper: LeaseKeeper, runtime: Runtime): Promise<LeasePart | undefined> {
    this.section.inside++;
    let admitted = false;
    try {
      admitted = await this.siblings.enter(wait, runtime);
    } finally {
      if (!admitted) this.section.left();
    }
    if (!admitted) return undefined;
    const { hold, finalKey } = this.part;
    keeper.checkExpiry(hold);
    if (this.part.state !== 'held') {
      this.leave();
      return undefined;
    }
    const part = new LeasePart(wait.key, finalKey, hold, this);
    this.siblings.admitted(part);
    return part;
  }

  leave(): void {
    this.siblings.leave();
    this.section.left();
  }
}

const NONE: readonly LeasePart[] = [];

/** A section that is running: what `AsyncLocalStorage` carries to everything called from it. */
export class Section {
  open = true;
  /** Nested calls that are in, or on their way in. */
  inside = 0;
  /** The keys that nested calls may enter. */
  parts: readonly LeasePart[];
  private onEmpty: (() => void) | undefined;

  constructor(
    /** The service instance the section belongs to: sections of another one never match. */
    readonly scope: object,
    /** Undefined once the section has ended. */
    public lease: Lease | undefined,
    private enclosing: Section | undefined,
  ) {
    this.parts = lease?.parts ?? NONE;
  }

  /** The nearest enclosing section that still runs. Ended ones are forgotten, so chains do not grow for ever. */
  get parent(): Section | undefined {
    while (this.enclosing && !this.enclosing.open) this.enclosing = this.enclosing.enclosing;
    return this.enclosing;
  }

  left(): void {
    this.inside--;
    if (this.inside === 0) this.onEmpty?.();
  }

  /**
   * Closes it for nested calls. True when none is inside. The section lets go of its lease: work that it has started
   * keeps the section in memory for as long as that runs, and may have started the next section, and so on.
   */
  close(): boolean {
    this.open = false;
    this.lease = undefined;
    this.parts = NONE;
    return this.inside === 0;
  }

  /** Resolves when all who are in have left. */
  emptied(): Promise<void> {
    return new Promise((resolve) => (this.onEmpty = resolve));
  }
}

// One for both builds: a lock taken through the CommonJS copy is seen by code that loaded the ESM copy. Frames
// know their service, so apps in one process do not see each other's.
const storage = processWide('sections', new AsyncLocalStorage<Section | undefined>());

/** The section the caller runs in: the nearest that is still open. */
export const currentSection = (): Section | undefined => {
  const section = storage.getStore();
  return section === undefined || section.open ? section : section.parent;
};

export const runInSection = <T>(section: Section, work: (lease: Lease) => T, lease: Lease): T =>
  storage.run(section, work, lease);

/**
 * The innermost open place for a key of this service, if the caller runs inside one: also one that was lost, but none
 * that was released by hand. Where a nested section runs in the lease around it again, the place is in the nested one:
 * in the lease around it the caller would wait for itself.
 */
export const enclosingEntry = (scope: object, kind: LockKind, finalKey: string): NestedEntry | undefined => {
  const { entersInto } = kindOf(kind);
  if (entersInto.length === 0) return undefined;
  let found: { section: Section; part: LeasePart } | undefined;
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    for (const part of section.parts) {
      if (
        part.finalKey !== finalKey ||
        part.state === 'released' ||
        !entersInto.includes(part.hold.claim.kind)
      )
        continue;
      if (!found || part.isInside(found.part)) found = { section, part };
    }
  }
  return found && new NestedEntry(found.section, found.part);
};

/** Whether the caller runs inside any section of this service. */
export const isNested = (scope: object): boolean => {
  for (let section = currentSection(); section; section = section.parent)
    if (section.scope === scope) return true;
  return false;
};

/** Among what enclosing sections hold, a key that orders after the given one. */
export const heldAfter = (scope: object, finalKey: string): string | undefined => {
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    for (const part of section.parts) {
      if (part.state === 'held' && part.finalKey > finalKey) return part.key;
    }
  }
  return undefined;
};

/** Runs `fn` outside every enclosing section: what it locks, it takes for real. */
export const detached = <T>(fn: () => T): T => storage.run(undefined, fn);
