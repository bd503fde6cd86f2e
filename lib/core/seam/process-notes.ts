/**
 * Short texts of processes about themselves, and messages between processes. Names consist of letters, digits and
 * hyphens. Nothing here decides about locks: a store may lose notes and messages.
 */
export interface ProcessNotes {
  /** Keeps a text under a name for `ttlMs`, or until the session of this process ends. Replaces the one before. */
  write(name: string, text: string, ttlMs: number): Promise<void>;

  /** Resolves with the texts under the names, in their order; undefined for a name without one. */
  read(names: readonly string[]): Promise<readonly (string | undefined)[]>;

  /** Removes the text under a name, if there is one. */
  remove(name: string): Promise<void>;

  /**
   * Calls `listener` with each text that is sent to the name from now on; returns a function that ends it. A store
   * without this method delivers no messages: other processes learn less about a hold.
   */
  listen?(name: string, listener: (text: string) => void): () => void;

  /**
   * Sends a text to the process that listens on the name. Resolves with false if certainly none does. Present with
   * {@link listen}.
   */
  send?(name: string, text: string): Promise<boolean>;
}
