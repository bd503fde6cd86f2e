import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockKind } from '../kinds/kinds.js';
import type { Lease } from '../lease/lease.js';
import { type LeasePart } from '../lease/lease-part.js';
import { processWide } from '../process-wide.js';

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
    /** The service instances that stop together with that one. */
    readonly group: object,
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

// One for both builds: a lock taken through the CommonJS copy is seen by code that loaded the ESM copy. Each section
// knows its service, so apps in one process do not see each other's.
const storage = processWide('sections', new AsyncLocalStorage<Section | undefined>());

/** The section the caller runs in: the nearest that is still open. */
export const currentSection = (): Section | undefined => {
  const section = storage.getStore();
  return section === undefined || section.open ? section : section.parent;
};

export const runInSection = <T, L>(section: Section | undefined, work: (lease: L) => T, lease: L): T =>
  storage.run(section, work, lease);

/** Closes sections of which each encloses the next, and resolves when all nested calls have left. */
export const closeAll = async (sections: readonly Section[]): Promise<void> => {
  for (let i = sections.length - 1; i >= 0; i -= 1) {
    if (!sections[i]!.close()) await sections[i]!.emptied();
  }
};

/** Whether the caller runs inside any section of these service instances. */
export const isNested = (group: object): boolean => {
  for (let section = currentSection(); section; section = section.parent)
    if (section.group === group) return true;
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

/** Among what enclosing sections hold of a key, a kind that is one of these. */
export const kindAround = (
  scope: object,
  finalKey: string,
  kinds: readonly string[],
): LockKind | undefined => {
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    for (const { state, finalKey: held, hold } of section.parts) {
      if (state === 'held' && held === finalKey && kinds.includes(hold.claim.kind)) return hold.claim.kind;
    }
  }
  return undefined;
};

/** How many holds of a key the sections around the caller have. */
export const holdsAround = (scope: object, finalKey: string): number => {
  let holds = 0;
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    holds += section.parts.filter((part) => part.state === 'held' && part.finalKey === finalKey).length;
  }
  return holds;
};

/** Runs `fn` outside every enclosing section: what it locks, it takes for real. */
export const detached = <T>(fn: () => T): T => storage.run(undefined, fn);
