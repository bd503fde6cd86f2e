/** Fewer removals than this are not worth a copy. */
const MIN = 64;

/**
 * A Map whose entries come and go with every lock. After as many removals as it has entries, it is copied into a new
 * Map.
 *
 * V8 grows a Map by a new table, and the old table keeps a pointer to the new one. Once one table has become old, it
 * keeps all later tables in memory until the next full collection, with everything that was ever in them. A copy is not
 * reachable from the Map it replaces.
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
    if (++this.removals >= Math.max(MIN, this.entries.size)) {
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
}
