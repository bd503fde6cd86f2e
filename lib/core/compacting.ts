/** Fewer removals than this are not worth a copy. */
const LEAST = 64;

/**
 * A Map whose entries come and go with every lock. When as many have gone as are there, it is copied into a new one.
 *
 * V8 makes room in such a collection by a new table, and leaves the old table with a pointer to it. Once one of them
 * has grown old, all later tables hang on it, with everything that was ever in them, until the next full collection.
 * A copy is not pointed to by what it replaces.
 */
export class CompactingMap<K, V> {
  private entries = new Map<K, V>();
  private removals = 0;

  get size(): number {
    return this.entries.size;
  }

  get(key: K): V | undefined {
    return this.entries.get(key);
  }

  has(key: K): boolean {
    return this.entries.has(key);
  }

  set(key: K, value: V): void {
    this.entries.set(key, value);
  }

  delete(key: K): boolean {
    if (!this.entries.delete(key)) return false;
    if (++this.removals >= Math.max(LEAST, this.entries.size)) {
      this.removals = 0;
      this.entries = new Map(this.entries);
    }
    return true;
  }

  keys(): IterableIterator<K> {
    return this.entries.keys();
  }

  values(): IterableIterator<V> {
    return this.entries.values();
  }

  clear(): void {
    this.entries.clear();
  }
}
