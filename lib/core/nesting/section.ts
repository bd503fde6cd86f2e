import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockKind } from '../kinds/kinds.js';
import type { Lease } from '../lease/lease.js';
import { type LeasePart } from '../lease/lease-part.js';

const NONE: readonly LeasePart[] = [];

/** A running section, which `AsyncLocalStorage` carries to all code that it calls. */
export class Section {
  open = true;
  /** Number of nested calls that have entered, or are entering. */
  inside = 0;
  /** Keys that nested calls may enter. */
  parts: readonly LeasePart[];
  private onEmpty: (() => void) | undefined;

  constructor(
    /** Service instance of the section. Sections of another instance never match. */
    readonly scope: object,
    /** Service instances that stop together with that one. */
    readonly group: object,
    /** Lease of the section; undefined once the section has ended. */
    public lease: Lease | undefined,
    private enclosing: Section | undefined,
  ) {
    this.parts = lease?.parts ?? NONE;
  }

  /**
   * Nearest enclosing section that is still running. Ended sections are unlinked, so chains do not grow without limit.
   */
  get parent(): Section | undefined {
    while (this.enclosing && !this.enclosing.open) this.enclosing = this.enclosing.enclosing;
    return this.enclosing;
  }

  left(): void {
    this.inside--;
    if (this.inside === 0) this.onEmpty?.();
  }

  /**
   * Closes the section for nested calls. Returns true when no nested call is inside. It drops the lease: background
   * work that the section started keeps the section in memory, and may have started the next section, and so on.
   */
  close(): boolean {
    this.open = false;
    this.lease = undefined;
    this.parts = NONE;
    return this.inside === 0;
  }

  /** Resolves when all nested calls have left. */
  emptied(): Promise<void> {
    return new Promise((resolve) => (this.onEmpty = resolve));
  }
}

// Each section knows its service, so apps in one process do not see each other's sections.
const storage = new AsyncLocalStorage<Section | undefined>();

/** Returns the section that the caller runs in: the nearest that is still open. */
export const currentSection = (): Section | undefined => {
  const section = storage.getStore();
  return section === undefined || section.open ? section : section.parent;
};

export const runInSection = <T, L>(section: Section | undefined, work: (lease: L) => T, lease: L): T =>
  storage.run(section, work, lease);

/** Closes nested sections, the innermost first. Resolves when all nested calls have left. */
export const closeAll = async (sections: readonly Section[]): Promise<void> => {
  for (let i = sections.length - 1; i >= 0; i -= 1) {
    if (!sections[i]!.close()) await sections[i]!.emptied();
  }
};

/** Returns whether the caller runs inside any section of these service instances. */
export const isNested = (group: object): boolean => {
  for (let section = currentSection(); section; section = section.parent)
    if (section.group === group) return true;
  return false;
};

/** Returns a key that an enclosing section holds, and that sorts after the given one. */
export const heldAfter = (scope: object, finalKey: string): string | undefined => {
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    for (const part of section.parts) {
      if (part.state === 'held' && part.finalKey > finalKey) return part.key;
    }
  }
  return undefined;
};

/** Returns the kind in which an enclosing section holds the key, if it is one of `kinds`. */
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

/** Returns how many holds of a key the enclosing sections have. */
export const holdsAround = (scope: object, finalKey: string): number => {
  let holds = 0;
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    holds += section.parts.filter((part) => part.state === 'held' && part.finalKey === finalKey).length;
  }
  return holds;
};

/** Runs `fn` outside every enclosing section: its locks are acquired from the store. */
export const detached = <T>(fn: () => T): T => storage.run(undefined, fn);
