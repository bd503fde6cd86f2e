import { AsyncLocalStorage } from 'node:async_hooks';
import { abortedError, takenError } from './failures.js';
import type { LockKind } from './claim.js';
import type { Hold } from './hold.js';
import { deadlineOf, type Wait } from './key-queue.js';
import type { Lease } from './lease.js';
import type { Runtime } from './runtime.js';

/** One key inside one open section: nested calls for it enter here, one at a time. */
export class Place {
  private occupied = false;
  /** Who wants to go in, in order; told true when the place is theirs, false when it has closed. */
  private readonly waiting = new Set<(admitted: boolean) => void>();

  constructor(
    readonly frame: Frame,
    readonly finalKey: string,
    readonly hold: Hold,
  ) {}

  /** A nested call may go in: the section is running and its lock is not lost. */
  get open(): boolean {
    return this.frame.open && this.hold.state === 'held';
  }

  /**
   * Goes in, after the siblings that came before. False when the lock was lost meanwhile: then the key has to be
   * taken for real. The section does not end before everyone who went in has left.
   */
  async enter(wait: Wait, runtime: Runtime): Promise<boolean> {
    this.frame.inside++;
    if (!this.occupied) {
      this.occupied = true;
      return true;
    }
    let admitted = false;
    try {
      admitted = await this.admission(wait, runtime);
    } finally {
      if (!admitted) this.frame.left();
    }
    return admitted;
  }

  leave(): void {
    const next = this.waiting.values().next();
    if (next.done) this.occupied = false;
    else next.value(true);
    this.frame.left();
  }

  private admission(wait: Wait, runtime: Runtime): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const { key, signal, startedAt, waitMs } = wait;
      const settle = (): void => {
        this.waiting.delete(admit);
        stopListening();
        runtime.clearTimer(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const admit = (admitted: boolean): void => {
        settle();
        resolve(admitted);
      };
      const refuse = (error: Error): void => {
        settle();
        reject(error);
      };
      const onAbort = (): void => refuse(abortedError(key, signal!, runtime.now() - startedAt));
      const timer = runtime.setTimer(
        () => refuse(takenError(key, runtime.now() - startedAt, waitMs)),
        deadlineOf(wait) - runtime.now(),
      );
      const stopListening = this.hold.onLoss(() => admit(false));
      this.waiting.add(admit);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (signal?.aborted) onAbort();
    });
  }
}

/** A section that is running: what `AsyncLocalStorage` carries to everything called from it. */
export class Frame {
  open = true;
  /** Nested calls that are in, or on their way in. */
  inside = 0;
  readonly places: readonly Place[];
  private onEmpty: (() => void) | undefined;

  constructor(
    /** The service instance the section belongs to: frames of another one never match. */
    readonly scope: object,
    readonly lease: Lease,
    holds: readonly { readonly finalKey: string; readonly hold: Hold }[],
    private enclosing: Frame | undefined,
  ) {
    this.places = holds.map(({ finalKey, hold }) => new Place(this, finalKey, hold));
  }

  /** The nearest enclosing section that still runs. Ended ones are forgotten, so chains do not grow for ever. */
  get parent(): Frame | undefined {
    while (this.enclosing && !this.enclosing.open) this.enclosing = this.enclosing.enclosing;
    return this.enclosing;
  }

  left(): void {
    this.inside--;
    if (this.inside === 0) this.onEmpty?.();
  }

  /** Lets nobody in any more. True when nobody is in. */
  close(): boolean {
    this.open = false;
    return this.inside === 0;
  }

  /** Resolves when all who are in have left. */
  emptied(): Promise<void> {
    return new Promise((resolve) => (this.onEmpty = resolve));
  }
}

// One for both builds: a lock taken through the CommonJS copy is seen by code that loaded the ESM copy. Frames
// know their service, so apps in one process do not see each other's.
const STORAGE = Symbol.for('nest-redis-lock:frames');
const shared = globalThis as unknown as Record<symbol, AsyncLocalStorage<Frame | undefined> | undefined>;
const storage = (shared[STORAGE] ??= new AsyncLocalStorage<Frame | undefined>());

/** The section the caller runs in: the nearest that is still open. */
export const currentFrame = (): Frame | undefined => {
  const frame = storage.getStore();
  return frame === undefined || frame.open ? frame : frame.parent;
};

export const runInFrame = <T>(frame: Frame, section: (lease: Lease) => T, lease: Lease): T =>
  storage.run(frame, section, lease);

/** The innermost open place for a key of this service, if the caller runs inside one. */
export const enclosingPlace = (scope: object, kind: LockKind, finalKey: string): Place | undefined => {
  for (let frame = currentFrame(); frame; frame = frame.parent) {
    if (frame.scope !== scope) continue;
    for (const place of frame.places) {
      if (place.finalKey === finalKey && place.open && place.hold.claim.kind === kind) return place;
    }
  }
  return undefined;
};

/** Whether the caller runs inside any section of this service. */
export const isNested = (scope: object): boolean => {
  for (let frame = currentFrame(); frame; frame = frame.parent) if (frame.scope === scope) return true;
  return false;
};

/** Among what enclosing sections hold, a key that orders after the given one. */
export const heldAfter = (scope: object, finalKey: string): string | undefined => {
  for (let frame = currentFrame(); frame; frame = frame.parent) {
    if (frame.scope !== scope) continue;
    for (const place of frame.places) if (place.open && place.finalKey > finalKey) return place.hold.key;
  }
  return undefined;
};

/**
 * Runs `fn` outside every enclosing lock: what it locks, it takes for real. For work that nobody waits for, and
 * for event listeners, which otherwise would run as a part of the section that emitted.
 *
 * @example detached(() => void this.mailer.send(order));
 */
export const detached = <T>(fn: () => T): T => storage.run(undefined, fn);
