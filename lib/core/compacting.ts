/** Fewer removals than this are not worth a copy. */
const LEAST = 64;

/**
 * Says when a Map or Set whose entries come and go with every lock is to be copied into a new one.
 *
 * V8 makes room in such a collection by a new table, and leaves the old table with a pointer to it. Once one of them
 * has grown old, all later tables hang on it, with everything that was ever in them, until the next full collection.
 * A copy is not pointed to by what it replaces.
 */
export class Turnover {
  private removals = 0;

  /** Call after each removal, with the number of entries left. True when as many have gone as are there. */
  isDue(size: number): boolean {
    if (++this.removals < Math.max(LEAST, size)) return false;
    this.removals = 0;
    return true;
  }
}
