import { randomUUID } from 'node:crypto';
import { EXPIRING } from '../../../lib/core/seam/lease-model.js';
import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { ListRequest } from '../../../lib/core/seam/listing.js';
import type { StoreHost } from '../../../lib/core/seam/lock-store.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import type {
  NodeKind,
  NodeStore as StoreOfNode,
  ServerTimes,
} from '../../../lib/stores/redis/quorum/node-store.js';
import { QuorumStore, type QuorumStoreOptions } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { VirtualRuntime } from '../core/virtual-runtime.js';
import { storeHost } from './store-host.js';

/** How long a server of these tests has been up when they begin, in ms. */
const LONG_AGO_MS = 24 * 3_600_000;

/** A server in memory that a test can break. Several processes connect to it. */
export class NodeServer {
  space!: MemorySpace;
  /** Requests fail at once, and nothing is done. */
  isDown = false;
  /** Requests are done, and their answers lost. */
  losesReplies = false;
  /** Acquires fail, and are read when the test says so, unless a release in doubt ends their connection first. */
  readsLate = false;
  /** It does not say since when it is up. */
  losesTimes = false;
  /** By how much more it says that it is up: its clock was set since it was started. */
  upForTooMuchMs = 0;
  private runId = randomUUID();
  /** Its wall clock is so far ahead, in ms. */
  aheadMs = 0;
  /** Requests that wait until the test lets them through; undefined while none has to. */
  private held: (() => void)[] | undefined;
  private startedAt: number;
  private readonly connections = new Set<() => void>();
  private unread: { readonly request: () => Promise<unknown>; readonly failure: StoreFailure }[] = [];
  /** What was asked, as `<method> <owner>`. */
  readonly requests: string[] = [];

  constructor(private readonly runtime: VirtualRuntime) {
    this.startedAt = runtime.now() - LONG_AGO_MS;
    this.forget();
  }

  /** A store on it, as a process has one. */
  connect(): StoreOfNode {
    return new NodeStore(this);
  }

  /** Starts again, without its data unless told otherwise. Everybody has to connect again. */
  restart({ keepsData = false } = {}): void {
    this.startedAt = this.runtime.now();
    this.runId = randomUUID();
    if (!keepsData) this.forget();
    this.reconnect();
  }

  reconnect(): void {
    for (const again of this.connections) again();
  }

  /** What comes from now on waits. */
  hold(): void {
    this.held ??= [];
  }

  /** What has waited goes on, in its order, or backwards. */
  letThrough(how: 'in order' | 'backwards' = 'in order'): void {
    const { held = [] } = this;
    this.held = undefined;
    for (const go of how === 'in order' ? held : held.reverse()) go();
  }

  /** What it has not read yet comes now. */
  async readAll(): Promise<void> {
    for (const { request } of this.unread.splice(0)) await request();
  }

  /** The connection on which that went wrong is ended: what was sent there is read no more. */
  endConnectionOf(failure: StoreFailure): void {
    this.unread = this.unread.filter((one) => one.failure !== failure);
  }

  times(): ServerTimes {
    return {
      upForMs: Math.max(0, this.runtime.now() - this.startedAt + this.upForTooMuchMs),
      serverId: this.runId,
      clockMs: this.runtime.now() + this.aheadMs,
      tokensPerMs: 1_000,
    };
  }

  onConnectedAgain(listener: () => void): void {
    this.connections.add(listener);
  }

  acquire<T>(owner: string, request: () => Promise<T>): Promise<T> {
    return this.send(`acquire ${owner}`, () => {
      if (!this.readsLate) return request();
      const failure = new StoreFailure('no answer', 'unknown');
      this.unread.push({ request, failure });
      throw failure;
    });
  }

  async send<T>(name: string, request: () => Promise<T>): Promise<T> {
    this.requests.push(name);
    if (this.isDown) throw new StoreFailure('connection refused', 'not-executed', { passing: true });
    const { held } = this;
    if (held) await new Promise<void>((resolve) => held.push(resolve));
    const losesReply = this.losesReplies;
    const reply = await request();
    if (losesReply) throw new StoreFailure('no answer', 'unknown');
    return reply;
  }

  private forget(): void {
    this.space = new MemorySpace({
      now: () => this.runtime.now(),
      wallClockMicros: () => (this.runtime.now() + this.aheadMs) * 1_000,
    });
  }
}

/** The store of one process on such a server. */
class NodeStore implements StoreOfNode {
  readonly name = 'The node';
  readonly lease = EXPIRING;
  readonly commandTimeoutMs = 1_000;
  readonly kinds: StoreOfNode['kinds'];
  private readonly stores = new WeakMap<MemorySpace, MemoryStore>();

  constructor(private readonly server: NodeServer) {
    const names = ['exclusive', 'read', 'write'] as const;
    this.kinds = Object.fromEntries(names.map((name) => [name, this.kind(name)]));
  }

  /** The data are those of the server at this moment. */
  private get store(): MemoryStore {
    const { space } = this.server;
    const store = this.stores.get(space) ?? new MemoryStore({ shared: space });
    this.stores.set(space, store);
    return store;
  }

  private kind(name: LockKind): NodeKind {
    const { server } = this;
    const own = (): NodeKind => this.store.kinds[name];
    return {
      acquire: (claim: Claim) => server.acquire(claim.owner, () => own().acquire(claim)),
      extendMany: (claims: readonly Claim[]) => server.send('extend', () => own().extendMany(claims)),
      commit: (claim: Claim, token: number) =>
        server.send(`commit ${token}`, () => own().commit!(claim, token)),
      downgrade: (claim: Claim) => server.send('downgrade', () => own().downgrade!(claim)),
      release: (claim, how) =>
        server.send(`release ${claim.owner}`, () => {
          if (how?.uncertain) server.endConnectionOf(how.uncertain);
          return own().release(claim, how);
        }),
      watch: (claim, listener) => own().watch(claim, listener),
    };
  }

  open({ atRisk }: StoreHost): Promise<void> {
    this.server.onConnectedAgain(atRisk);
    return Promise.resolve();
  }

  serverTimes(): Promise<ServerTimes> {
    if (this.server.losesTimes) return Promise.reject(new StoreFailure('no times', 'not-executed'));
    return this.server.send('times', () => Promise.resolve(this.server.times()));
  }

  inspect(finalKey: string) {
    return this.server.send('inspect', () => this.store.inspect(finalKey));
  }

  list(request: ListRequest) {
    return this.server.send('list', () => this.store.list(request));
  }

  forceUnlock(finalKey: string) {
    return this.server.send('forceUnlock', () => this.store.forceUnlock(finalKey));
  }

  ping(): Promise<void> {
    return this.server.send('ping', () => this.store.ping());
  }

  close(): Promise<void> {
    return this.store.close();
  }
}

/** A quorum of the servers a, b and c, and what it has warned of. */
export const threeNodes = (options: Partial<QuorumStoreOptions> = {}) => {
  const runtime = new VirtualRuntime();
  const servers = [0, 1, 2].map(() => new NodeServer(runtime));
  const warnings: string[] = [];
  const risks: (string | undefined)[] = [];
  const store = new QuorumStore({
    nodes: servers.map((server) => server.connect()),
    names: ['a', 'b', 'c'],
    runtime,
    ...options,
  });
  const host = storeHost({
    runtime,
    warn: (warning) => warnings.push(warning),
    atRisk: (key) => risks.push(key),
  });
  void store.open(host);
  return { runtime, servers, store, warnings, risks };
};
