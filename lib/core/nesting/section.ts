import { AsyncLocalStorage } from 'node:async_hooks';
import { invalidOption } from '../settings/option-checks.js';
import type { Lease } from '../lease/lease.js';
import { type LeasePart } from '../lease/lease-part.js';

const NONE: readonly LeasePart[] = [];

/**
 * A running section. `AsyncLocalStorage` carries it to all code that it calls, and to unrelated tasks of shared queues. So
 * it lets no call into a lock. It is for `currentLease()`, for warnings, and for the end of an app.
 */
export class Section {
  open = true;
  /** Keys of the lease. */
  parts: readonly LeasePart[];

  constructor(
    /** Service instance of the section. */
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

  /**
   * Ends the section. It drops the lease: background work that the section started keeps the section in memory, and may
   * have started the next section, and so on.
   */
  close(): void {
    this.open = false;
    this.lease = undefined;
    this.parts = NONE;
  }
}

// Each section knows its service, so apps in one process do not see each other's sections.
const storage = new AsyncLocalStorage<Section | undefined>();

/** Returns the section of the caller's asynchronous context: the nearest that is still open. */
export const currentSection = (): Section | undefined => {
  const section = storage.getStore();
  return section === undefined || section.open ? section : section.parent;
};

export const runInSection = <T, L>(section: Section | undefined, work: (lease: L) => T, lease: L): T =>
  storage.run(section, work, lease);

/** Returns whether the caller runs inside any section of these service instances. */
export const isNested = (group: object): boolean => {
  for (let section = currentSection(); section; section = section.parent)
    if (section.group === group) return true;
  return false;
};

/** Returns the innermost key of the sections around that is held and accepted by `isWanted`. */
export const partAround = (scope: object, isWanted: (part: LeasePart) => boolean): LeasePart | undefined => {
  for (let section = currentSection(); section; section = section.parent) {
    if (section.scope !== scope) continue;
    const found = section.parts.find((part) => part.state === 'held' && isWanted(part));
    if (found) return found;
  }
  return undefined;
};

/**
 * Runs `fn` without a section around it. A call in it has no warning and no `LOCK_NOT_REENTRANT` because of a key that such
 * a section holds, and `currentLease()` throws. Use it for background work, and for event listeners.
 *
 * @example detached(() => void this.mailer.send(order));
 */
export const detached = <T>(fn: () => T): T =>
  typeof fn === 'function'
    ? storage.run(undefined, fn)
    : invalidOption('The argument of detached', 'a function', fn);
