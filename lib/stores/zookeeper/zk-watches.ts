import type { ZkConnection, ZkEvent } from './zk-connection.js';

/** Longest paths of one request in bytes. A server accepts a frame of `jute.maxbuffer`, which is 1 MiB by default. */
const MAX_BYTES = 128 * 1_024;

/** What of a node is watched: its data and its end, or its children. */
export type Watched = 'data' | 'children';

/** Types of events. */
const DELETED = 2;
const CHILDREN_CHANGED = 4;

/** A node was deleted, or has changed otherwise. */
export type ZkChange = 'deleted' | 'changed';

/** The watches of a session. A watch is told of one change. After a reconnect all are set again. */
export class ZkWatches {
  private readonly listeners: Readonly<Record<Watched, Map<string, Set<(change: ZkChange) => void>>>> = {
    data: new Map(),
    children: new Map(),
  };

  /** Calls `changed` once, with the next change. Returns a function that ends that. */
  add(watched: Watched, path: string, changed: (change: ZkChange) => void): () => void {
    const listeners = this.listeners[watched];
    const ofPath = listeners.get(path) ?? new Set();
    listeners.set(path, ofPath.add(changed));
    return () => {
      ofPath.delete(changed);
      if (ofPath.size === 0 && listeners.get(path) === ofPath) listeners.delete(path);
    };
  }

  changed({ type, path }: ZkEvent): void {
    const change = type === DELETED ? 'deleted' : 'changed';
    if (type !== CHILDREN_CHANGED) this.tell('data', path, change);
    if (type === CHILDREN_CHANGED || type === DELETED) this.tell('children', path, change);
  }

  /** Forgets all watches: their session is over. */
  clear(): void {
    this.listeners.data.clear();
    this.listeners.children.clear();
  }

  /**
   * Sets all watches on a new connection of the session. The server tells a change since `lastSeen` at once. The watches are
   * sent in parts. `untilOfPart` is called for each and returns until when its reply has to come: a server that replies works.
   */
  async setAgain(connection: ZkConnection, lastSeen: bigint, untilOfPart: () => number): Promise<void> {
    const parts: { data: string[]; children: string[] }[] = [{ data: [], children: [] }];
    let bytes = 0;
    for (const watched of ['data', 'children'] as const) {
      for (const path of this.listeners[watched].keys()) {
        bytes += Buffer.byteLength(path) + 4;
        if (bytes > MAX_BYTES) {
          parts.push({ data: [], children: [] });
          bytes = 0;
        }
        parts.at(-1)![watched].push(path);
      }
    }
    for (const { data, children } of parts)
      if (data.length + children.length > 0)
        await connection.setWatches(lastSeen, data, children, untilOfPart());
  }

  private tell(watched: Watched, path: string, change: ZkChange): void {
    const listeners = this.listeners[watched].get(path);
    this.listeners[watched].delete(path);
    for (const changed of listeners ?? []) changed(change);
  }
}
