import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { checkMs, checkObject, reading, invalidOption } from '../../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../../core/settings/option-names.js';
import { isArray } from '../../../core/util/describe.js';
import { systemRuntime, type Runtime } from '../../../core/util/runtime.js';
import { printsOnly } from '../../../core/util/printing.js';
import type { KindStores, LockStore, StoreHost } from '../../../core/seam/lock-store.js';
import type { KeyState } from '../../../core/seam/reply.js';
import { EXPIRING } from '../../../core/seam/lease-model.js';
import type { ListReply, ListRequest } from '../../../core/seam/listing.js';
import { StoreHosts } from '../../../core/seam/store-hosts.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { ProcessNotes } from '../../../core/seam/process-notes.js';
import { withinMs } from '../../../core/util/wait-for.js';
import type { NodeStore } from './node-store.js';
import { RequestedLeases } from './requested-leases.js';
import { QuorumCall, majorityOf, SILENT_NODES_MS, QuorumFailure } from './quorum-call.js';
import { NodeClocks } from './node-clocks.js';
import { QuorumHolds } from './quorum-holds.js';
import type { QuorumHost } from './quorum-host.js';
import { QuorumKind } from './quorum-kind.js';
import { QuorumNotes } from './quorum-notes.js';
import { pageOfQuorum } from './quorum-listing.js';
import { QuorumNode } from './quorum-node.js';
import { mergedState } from './quorum-states.js';

/** Options of {@link QuorumStore}. */
export interface QuorumStoreOptions {
  /** At least two independent stores, each on a server of its own: Redis stores, or stores in memory. The quorum closes them. */
  readonly nodes: readonly NodeStore[];
  /** Names of the nodes in errors and in the log. Default: their addresses, else `node 1`, `node 2`, and so on. */
  readonly names?: readonly string[] | undefined;
  /**
   * Time in ms during which a server counts as failed after its start, because it may have forgotten holds. 0: no such
   * time, for servers that keep everything on disk. Default: the longest lease that was requested here before the start
   * and had not ended then, and at least `minDelayMs`.
   */
  readonly delayAfterRestartMs?: number | undefined;
  /** Minimum for the default of `delayAfterRestartMs`, in ms. Default: the longest `watchdogMs` of its services. */
  readonly minDelayMs?: number | undefined;
  /** @internal Clock and timers, for tests. */
  readonly runtime?: Runtime | undefined;
}

const NAMES: Names<QuorumStoreOptions> = {
  ...{ nodes: true, names: true, delayAfterRestartMs: true, minDelayMs: true, runtime: true },
};

/**
 * Keeps locks on a majority of several independent stores: locking continues while fewer than half of them are down.
 *
 * It supports exclusive locks and both halves of read-write locks, but no other kinds, semaphores or latches. See
 * docs/stores/quorum.md for its guarantees.
 *
 * @throws {LockConfigurationError} (from the constructor) when the nodes or another option cannot be used
 *
 * @example
 * const nodes = urls.map((redis) => new RedisStore({ redis, commandTimeoutMs: 500 }));
 * RedisLockModule.forRoot({ store: new QuorumStore({ nodes }) });
 */
export class QuorumStore implements LockStore {
  readonly name = 'The quorum';
  readonly lease = EXPIRING;
  /** The longest of the nodes. */
  readonly commandTimeoutMs: number;
  readonly kinds: KindStores;
  readonly place: string;
  /** Undefined if a node keeps none. */
  readonly processes?: ProcessNotes;
  private readonly nodes: readonly QuorumNode[];
  private readonly majority: number;
  private readonly holds: QuorumHolds;
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly host: QuorumHost;
  private readonly requested = new RequestedLeases();
  /** The node that votes for a server, by the id of the server's run: the first node that was found to be it. */
  private readonly requestedNodes = new Map<string, QuorumNode>();
  private readonly hosts = new StoreHosts();
  private opened: Promise<void> | undefined;
  private closed = false;
  private longestWatchdogMs = 0;

  constructor(options: QuorumStoreOptions) {
    const name = 'The options of QuorumStore';
    const { nodes, names, delayAfterRestartMs, minDelayMs, runtime } = reading(name, () => {
      checkObject(name, 'an object such as { nodes: [store, store, store] }', options);
      checkNames(options, 'QuorumStore', NAMES);
      return { ...options };
    });
    checkNodes(nodes);
    this.commandTimeoutMs = Math.max(...nodes.map((store) => store.commandTimeoutMs));
    const delayMs = checkMs('delayAfterRestartMs', delayAfterRestartMs);
    const minMs = checkMs('minDelayMs', minDelayMs);
    const clock = runtime ?? systemRuntime();
    const clocks = new NodeClocks(() => this.nodes, clock);
    const nodeHost = {
      runtime: clock,
      delayAfterStartMs: (startedAt: number) =>
        delayMs ?? Math.max(minMs ?? this.longestWatchdogMs, this.requested.longestAt(startedAt)),
      clockOff: (node: QuorumNode) => clocks.off(node),
      tokenAhead: (tokenMs: number) => clocks.tokenAhead(tokenMs),
      lookAgain: (node: QuorumNode) => clocks.lookAgain(node),
      sameAs: (node: QuorumNode) => this.sameAs(node),
      hasEnoughWithoutFailing: () =>
        this.nodes.filter((node) => node.failing === undefined && !node.isDistrusted).length >= this.majority,
      warn: (warning: string) => this.hosts.warn(warning),
    };
    this.nodes = nodes.map(
      (store, i) => new QuorumNode(names?.[i] ?? store.address?.name ?? `node ${i + 1}`, store, nodeHost),
    );
    this.place = nodes
      .map(({ place = '' }) => place)
      .sort()
      .join(', ');
    this.majority = majorityOf(nodes.length);
    this.holds = new QuorumHolds(clock);
    this.host = {
      nodes: this.nodes,
      majority: this.majority,
      runtime: clock,
      noteLease: (leaseMs) => this.requested.add(leaseMs, clock.now()),
      proposedToken: () => clocks.proposedToken(),
      run: (work) => this.run(work),
    };
    const notes = nodes.flatMap(({ processes }) => processes ?? []);
    if (notes.length === nodes.length) this.processes = new QuorumNotes(notes, this.host);
    this.kinds = {
      exclusive: new QuorumKind(this.host, this.holds, false),
      read: new QuorumKind(this.host, this.holds, true),
      write: new QuorumKind(this.host, this.holds, true),
    };
  }

  open(host: StoreHost): Promise<void> {
    this.hosts.add(host);
    this.longestWatchdogMs = Math.max(this.longestWatchdogMs, host.watchdogMs);
    return (this.opened ??= this.openNodes(host));
  }

  /** Opens every node. A node that cannot be opened now counts as failed by its requests. */
  private async openNodes(host: StoreHost): Promise<void> {
    const { hosts } = this;
    // A warning that several nodes give at once, about their options, is one warning.
    const atOnce = new Map<string, string[]>();
    let isAtOnce = true;
    // A fact about the options of all nodes is one line.
    const facts = new Set<string>();
    const log = (fact: string): void => {
      if (!facts.has(fact)) hosts.log(fact);
      facts.add(fact);
    };
    const opened = this.nodes.map((node) => {
      const warn = (warning: string): void => {
        if (isAtOnce) atOnce.set(warning, [...(atOnce.get(warning) ?? []), node.name]);
        else hosts.warn(`${node.name}: ${warning}`);
      };
      const atRisk = (finalKey?: string): void => {
        node.connectedAgain();
        hosts.atRisk(finalKey);
      };
      return node.store.open({ ...host, log, warn, atRisk });
    });
    isAtOnce = false;
    for (const [warning, names] of atOnce) hosts.warn(`${names.join(', ')}: ${warning}`);
    for (const one of await Promise.allSettled(opened)) {
      if (one.status === 'rejected' && !(one.reason instanceof StoreFailure)) throw one.reason;
    }
  }

  checkKey(finalKey: string): void {
    for (const { store } of this.nodes) store.checkKey?.(finalKey);
  }

  /** Resolves with the holders of the key at a majority of nodes. */
  async inspect(finalKey: string): Promise<KeyState | null> {
    const { majority, nodes } = this;
    const states = await this.requestAll((store) => store.inspect(finalKey), 'not-executed');
    const found = states.filter((state) => state !== null);
    return mergedState(found, { majority, atLeast: majority - (nodes.length - states.length) });
  }

  /** Resolves with the keys of all nodes that reply. A key of fewer than a majority is the rest of a lock. */
  list(request: ListRequest): Promise<ListReply> {
    const { nodes, majority } = this;
    const requestAll = <T>(of: (store: NodeStore) => Promise<T>): Promise<readonly T[]> =>
      this.requestAll(of, 'not-executed');
    return this.run(() => pageOfQuorum({ nodes, majority, requestAll }, request));
  }

  /** Ends the holds on all nodes. Resolves with true when there was one on any of them. */
  async forceUnlock(finalKey: string): Promise<boolean> {
    return (await this.requestAll((store) => store.forceUnlock(finalKey), 'unknown')).some(Boolean);
  }

  async ping(): Promise<void> {
    await this.requestAll((store) => store.ping(), 'not-executed');
  }

  /** Resolves with the warnings of each node, with its name. A node that cannot be reached gives one, too. */
  async diagnose(): Promise<readonly string[]> {
    const replies = await Promise.allSettled(
      this.nodes.map(async ({ store }) => (await store.diagnose?.({ noQueue: true })) ?? []),
    );
    return replies.flatMap((one, i) => {
      const { name } = this.nodes[i]!;
      if (one.status === 'fulfilled') return one.value.map((warning) => `${name}: ${warning}`);
      const cause: unknown = one.reason;
      if (cause instanceof LockConfigurationError)
        throw new LockConfigurationError(`${name}: ${cause.message}`, { cause });
      return [`${name} cannot be reached: locks need ${this.majority} of ${this.nodes.length} nodes.`];
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    const stopUndos = (): void => this.nodes.forEach(({ undo }) => undo.stop());
    const over = Promise.all(this.underWay)
      .then(stopUndos)
      .then(() => Promise.all(this.nodes.map(({ undo }) => undo.idle())));
    // Releases may wait much longer for a node that serves few of them.
    await withinMs(over, this.commandTimeoutMs, this.host.runtime);
    stopUndos();
    await Promise.all(this.nodes.map(({ store }) => store.close()));
  }

  /** Asks every node, whether it counts or not. Resolves with the replies once a majority has replied. */
  private requestAll<T>(
    request: (store: NodeStore) => Promise<T>,
    outcome: 'not-executed' | 'unknown',
  ): Promise<T[]> {
    return this.run(async () => {
      const quorumCall = new QuorumCall(this.nodes, ({ store }) => request(store));
      await quorumCall.until(() => false, { runtime: this.host.runtime, minMs: SILENT_NODES_MS });
      if (quorumCall.replies.length >= this.majority) return [...quorumCall.replies];
      throw new QuorumFailure(quorumCall.failures, this.host, outcome);
    });
  }

  private run<T>(work: () => Promise<T>): Promise<T> {
    if (this.closed) {
      return Promise.reject(new StoreFailure('the lock store is closed', 'not-executed'));
    }
    const running = work();
    const tracked: Promise<unknown> = running.then(
      () => this.underWay.delete(tracked),
      () => this.underWay.delete(tracked),
    );
    this.underWay.add(tracked);
    return running;
  }

  private sameAs(node: QuorumNode): string | undefined {
    const { serverId } = node;
    if (serverId === undefined) return undefined;
    const requestedNode = this.requestedNodes.get(serverId);
    if (requestedNode?.serverId === serverId) return requestedNode === node ? undefined : requestedNode.name;
    for (const [id, one] of this.requestedNodes) if (one.serverId !== id) this.requestedNodes.delete(id);
    this.requestedNodes.set(serverId, node);
    return undefined;
  }
}

printsOnly(QuorumStore, ({ place }) => ({ place }));

/**
 * Checks the nodes.
 *
 * @throws {LockConfigurationError} that names what is wrong
 */
const checkNodes = (nodes: unknown): void => {
  if (!isArray(nodes)) invalidOption('nodes', 'a list of stores', nodes);
  const stores = nodes as readonly NodeStore[];
  if (stores.length < 2) {
    throw new LockConfigurationError(
      `A quorum needs at least 2 nodes, better 3 or 5, but has ${stores.length}. For one server give its address by itself.`,
    );
  }
  if (new Set(stores).size < stores.length) {
    throw new LockConfigurationError('nodes has the same store twice: its vote would count twice.');
  }
  const servers = new Set<string>();
  stores.forEach((store, i) => {
    for (const kind of ['exclusive', 'read', 'write'] as const) {
      const of = (store as Partial<NodeStore> | undefined)?.kinds?.[kind];
      if (!of) invalidOption(`nodes[${i}]`, `a store that has locks of the kind "${kind}"`, store);
      else if (kind !== 'read' && !of.commit)
        invalidOption(`nodes[${i}]`, 'a store whose kinds have "commit"', store);
    }
    const { address } = store;
    if (!address) return;
    if (!address.isOneServer) {
      throw new LockConfigurationError(
        `The node ${address.name} is a Redis Cluster or behind Sentinel, but each node of a quorum has to be one server: a ` +
          'replica that takes over may have forgotten locks.',
      );
    }
    if (servers.has(address.name))
      throw new LockConfigurationError(
        `Two nodes are the same server, ${address.name}: its vote would count twice.`,
      );
    servers.add(address.name);
  });
};
