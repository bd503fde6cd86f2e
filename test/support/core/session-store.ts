import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import type { LeaseModel, Session } from '../../../lib/core/seam/lease-model.js';
import type { KindStore, LockStore, ReleaseOptions } from '../../../lib/core/seam/lock-store.js';
import { StoreQueueEntry } from '../../../lib/core/seam/store-queue-entry.js';
import type { AcquireReply, ExtendReply, KeyState, ReleaseReply } from '../../../lib/core/seam/reply.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { VirtualRuntime } from './virtual-runtime.js';

export const SESSION_TIMEOUT_MS = 9_000;

/** One owner's node on the server. The first node of a key is its holder. */
interface Node {
  readonly claim: ExclusiveClaim;
  readonly store: SessionStore;
  /** Number of the change that made it: also its token, however late it gets the key. */
  readonly number: number;
}

/** A server whose locks end with the session of their process, as those of ZooKeeper do. */
export class SessionServer {
  private readonly nodes = new Map<string, Node[]>();
  private changes = 0;

  of(key: string): readonly Node[] {
    return this.nodes.get(key) ?? [];
  }

  /** The owners of all nodes. */
  get owners(): readonly string[] {
    return [...this.nodes.values()].flat().map(({ claim }) => claim.owner);
  }

  add(claim: ExclusiveClaim, store: SessionStore): Node {
    const node = { claim, store, number: ++this.changes };
    this.nodes.set(claim.finalKey, [...this.of(claim.finalKey), node]);
    return node;
  }

  /** Removes nodes. A node that is the first now has the key, whether its process asks or not. */
  remove(which: (node: Node) => boolean): readonly Node[] {
    const removed: Node[] = [];
    for (const [key, nodes] of this.nodes) {
      const left = nodes.filter((node) => !which(node));
      removed.push(...nodes.filter(which));
      this.nodes.set(key, left);
      if (left[0] && left[0] !== nodes[0]) left[0].store.hasTurn(left[0]);
    }
    return removed;
  }
}

/** The store of one process on such a server. */
export class SessionStore implements LockStore {
  readonly name = 'The session store';
  readonly lease: LeaseModel = { type: 'session', timeoutMs: SESSION_TIMEOUT_MS };
  readonly commandTimeoutMs = 1_000;
  readonly kinds: { readonly exclusive: KindStore<ExclusiveClaim> };
  /** Requests of the core, by name. */
  readonly asked: string[] = [];
  /** Whether requests are answered. Else they fail, and are not executed. */
  isConnected = true;
  /** Whether requests are executed, but their replies lost. */
  losesReplies = false;
  private validUntil = 0;
  private ending = new AbortController();
  private session = this.newSession();
  private readonly entries = new Map<string, StoreQueueEntry>();

  constructor(
    private readonly server: SessionServer,
    private readonly runtime: VirtualRuntime,
  ) {
    this.kinds = {
      exclusive: {
        traits: { handedOff: false },
        acquire: (claim) => this.request('acquire', () => this.acquire(claim)),
        extendMany: (claims) => this.request('extend', () => claims.map((claim) => this.held(claim))),
        release: (claim, how) => this.request('release', () => this.release(claim, how)),
      },
    };
    this.beAlive();
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    const [first, ...others] = this.server.of(finalKey);
    if (!first) return Promise.resolve(null);
    const holder = { owner: first.claim.owner, count: 1, remainingMs: Infinity };
    const waiting = others.map(({ claim }) => claim.owner);
    return Promise.resolve({ kind: 'exclusive', holders: [holder], waiting });
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    const [first] = this.server.of(finalKey);
    return Promise.resolve(this.server.remove((node) => node === first).length > 0);
  }

  ping(): Promise<void> {
    return this.request('ping', () => undefined);
  }

  close(): Promise<void> {
    this.isConnected = false;
    return Promise.resolve();
  }

  /** Ends the session, as a server does that has not heard of the process for its time-out. */
  expire(): void {
    this.server.remove(({ store }) => store === this);
    const { ending } = this;
    this.ending = new AbortController();
    this.session = this.newSession();
    ending.abort();
  }

  /** One of its nodes has become the first. */
  hasTurn({ claim, number }: Node): void {
    this.entries.get(claim.owner)?.notify(this.grantOf(number, this.runtime.now()));
    this.entries.delete(claim.owner);
  }

  private newSession(): Session {
    const until = (): number => this.validUntil;
    return {
      get validUntil() {
        return until();
      },
      over: this.ending.signal,
    };
  }

  /** The session lives by its own pings. */
  private beAlive(): void {
    if (this.isConnected) this.validUntil = this.runtime.now() + SESSION_TIMEOUT_MS;
    this.runtime.setTimer(() => this.beAlive(), SESSION_TIMEOUT_MS / 3);
  }

  private grantOf(token: number, since: number): Grant {
    const { session } = this;
    return { status: 'granted', validForMs: SESSION_TIMEOUT_MS, since, session, token, tokens: 1 };
  }

  private acquire(claim: ExclusiveClaim): AcquireReply {
    const nodes = this.server.of(claim.finalKey);
    const known = nodes.find((node) => node.claim.owner === claim.owner);
    if (!known && nodes.length > 0 && !claim.waits) return { status: 'taken', retryInMs: Infinity };
    const node = known ?? this.server.add(claim, this);
    if (this.server.of(claim.finalKey)[0] === node) return this.grantOf(node.number, this.runtime.now());
    const entry = new StoreQueueEntry(() => this.kinds.exclusive.release(claim).then(() => undefined));
    this.entries.set(claim.owner, entry);
    return { status: 'queued', entry, position: nodes.indexOf(node), retryInMs: Infinity };
  }

  private held({ finalKey, owner }: ExclusiveClaim): ExtendReply {
    const isFirst = this.server.of(finalKey)[0]?.claim.owner === owner;
    return isFirst ? { status: 'held', validForMs: SESSION_TIMEOUT_MS } : { status: 'lost' };
  }

  private release({ finalKey, owner }: ExclusiveClaim, how?: ReleaseOptions): ReleaseReply {
    if (how?.keepForMs !== undefined) throw new Error('a session keeps no lock for a time');
    const wasHeld = this.server.of(finalKey)[0]?.claim.owner === owner;
    this.entries.delete(owner);
    this.server.remove(({ claim }) => claim.owner === owner);
    return { wasHeld, othersWaiting: false };
  }

  private async request<T>(name: string, request: () => T): Promise<T> {
    this.asked.push(name);
    if (!this.isConnected) throw new StoreFailure('not connected', 'not-executed', { passing: true });
    const reply = request();
    await Promise.resolve();
    if (this.losesReplies) throw new StoreFailure('no reply', 'unknown', { passing: true });
    this.validUntil = this.runtime.now() + SESSION_TIMEOUT_MS;
    return reply;
  }
}
