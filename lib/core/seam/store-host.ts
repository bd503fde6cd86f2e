import type { Runtime } from '../runtime.js';

/**
 * The start of the app that uses a store. Until it is over, an idle connection must not keep the process alive, and the
 * store tries to connect only while it is needed. The reason: an app that fails to start never closes its store.
 */
export interface AppStart {
  /** Whether a caller waits for the store now. */
  readonly isNeeded: boolean;
  /** Calls the listener when the app has started. */
  whenOver(listener: () => void): void;
}

/** A lock service, as its store sees it. */
export interface StoreHost {
  /** The only clock, timers and ids of the store. */
  readonly runtime: Runtime;
  /** Time to live of renewed holds, in ms. A store with sessions requests this as its session time-out. */
  readonly watchdogMs: number;
  /** The start of the app; undefined when the app has started, and for a store that is passed as an option. */
  readonly starting?: AppStart | undefined;
  /** Logs a fact about the store that its users should know, as a sentence. The store gives each one once. */
  log(sentence: string): void;
  /** Logs a warning about the setup of the store, as a sentence. The store gives each warning once. */
  warn(sentence: string): void;
  /**
   * Reports that something may have ended the holds of a key, or of all keys if none is passed. The core then checks
   * them at once instead of at the next renewal.
   */
  atRisk(finalKey?: string): void;
  /** Reports that another client asks an owner to release its hold. The hold stays valid. */
  revocationRequested(finalKey: string, owner: string): void;
}
