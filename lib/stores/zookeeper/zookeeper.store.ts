import type { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { printsOnly } from '../../core/util/printing.js';
import { systemRuntime, type Runtime } from '../../core/util/runtime.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { LeaseModel } from '../../core/seam/lease-model.js';
import type { ListReply, ListRequest } from '../../core/seam/listing.js';
import type { KindStores, LockStore, StoreHost } from '../../core/seam/lock-store.js';
import type { ProcessNotes } from '../../core/seam/process-notes.js';
import { heldState, type KeyState } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { StoreHosts } from '../../core/seam/store-hosts.js';
import { checkFunction, checkMs, reading } from '../../core/settings/option-checks.js';
import { checkNames } from '../../core/settings/option-names.js';
import { foundAt, keyPageOf } from '../key-pages.js';
import { EmptyContainers } from './empty-containers.js';
import { HeldNodes, revocationOf } from './held-nodes.js';
import { LockPaths } from './lock-path.js';
import { NodeLocks } from './node-locks.js';
import { NodeParents } from './node-parents.js';
import { PathOrder } from './path-order.js';
import { leasesIn, nodesOf, turnsIn, type KeyNodes } from './permit-nodes.js';
import { Places } from './place.js';
import { aclsFor, getChildren, sync, type Acl } from './requests.js';
import { CODE, unless } from './zk-failure.js';
import { ZkSession } from './zk-session.js';
import { checkZookeeper } from './zookeeper-checks.js';
import { ZookeeperKind } from './zookeeper-kind.js';
import { ZookeeperNotes } from './zookeeper-notes.js';
import { ZookeeperPermits } from './zookeeper-permits.js';
import { dialerOf, parseConnect, resolveAuth, resolveBasePath, resolveTls } from './zookeeper-options.js';

const DEFAULT_COMMAND_TIMEOUT_MS = 4_000;
/** The protocol has 32 bits for it. */
const MAX_SESSION_MS = 2 ** 31 - 1;

const HIDDEN_KEYS = 'ZooKeeper cannot list its locks with the option path: a path does not tell its key.';

const NOT_REVOCABLE =
  'Curator has no revocation of permits, so their holders cannot be asked to release them';

/** Options of {@link ZooKeeperStore}. */
export interface ZooKeeperStoreOptions {
  /** Servers, such as `zk1:2181,zk2:2181,zk3:2181`. A path behind the last one is the chroot: `zk1:2181/app`. */
  readonly connect: string;
  /** Node that contains the locks. Each key is one node in it. Default: `/locks`. */
  readonly basePath?: string | undefined;
  /**
   * Returns the path of the lock of a key, for locks that Java takes under paths of its own. The key has its prefix
   * already. Default: the key, percent-encoded where a path requires it, in `basePath`.
   */
  readonly path?: ((key: string) => string) | undefined;
  /** Identity of the app. Only it may use the nodes that the store creates. Default: none, and all clients may. */
  readonly auth?: { readonly digest: string } | undefined;
  /** Options of `tls.connect` for the secure port of the servers; `true` for their defaults. Default: no TLS. */
  readonly tls?: ConnectionOptions | boolean | undefined;
  /**
   * Time in ms after which a process without contact has lost its locks. The start fails when the servers do not grant
   * it. Default: `watchdogMs`, or what the servers grant instead.
   */
  readonly sessionTimeoutMs?: number | undefined;
  /** Time in ms within which each request has its reply. Default: 4,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** @internal Clock and timers, for tests. */
  readonly runtime?: Runtime | undefined;
  /** @internal How each server is connected to, for tests. */
  readonly dialers?: readonly (() => Socket)[] | undefined;
}

const OPTION_NAMES: Readonly<Record<Exclude<keyof ZooKeeperStoreOptions, 'runtime' | 'dialers'>, true>> = {
  ...{ connect: true, basePath: true, path: true, auth: true, tls: true },
  ...{ sessionTimeoutMs: true, commandTimeoutMs: true },
};

/**
 * Keeps locks in ZooKeeper, in the layout of Curator's recipes: Java services with Curator take the same locks.
 *
 * It supports exclusive locks, read-write locks and permits. They end with the session of their process. See
 * docs/stores/zookeeper.md for its guarantees.
 *
 * @throws {LockConfigurationError} (from the constructor) when an option cannot be used
 *
 * @example
 * LockModule.forRoot({ store: new ZooKeeperStore({ connect: 'zk1:2181,zk2:2181,zk3:2181' }) });
 */
export class ZooKeeperStore implements LockStore {
  readonly name = 'ZooKeeper';
  readonly place: string;
  readonly commandTimeoutMs: number;
  readonly kinds: Required<Pick<KindStores, 'exclusive' | 'permit' | 'read' | 'write'>>;
  readonly processes: Required<ProcessNotes>;
  private readonly notes: ZookeeperNotes;
  private readonly session: ZkSession;
  private readonly paths: LockPaths;
  private readonly order = new PathOrder();
  private readonly places = new Places();
  private readonly locks: NodeLocks;
  private readonly parents: NodeParents;
  private readonly empty: EmptyContainers;
  private readonly acls: readonly Acl[];
  private readonly hosts = new StoreHosts();
  private readonly sessionTimeoutMs: number | undefined;
  private isOpened = false;
  private hasToldOfTokens = false;

  constructor(input: ZooKeeperStoreOptions) {
    const {
      runtime = systemRuntime(),
      dialers,
      ...given
    } = reading('The options of ZooKeeperStore', () => ({
      ...input,
    }));
    checkNames(given, 'ZooKeeperStore', OPTION_NAMES);
    const { servers, chroot } = parseConnect(given.connect);
    const auth = resolveAuth(given.auth);
    const acls = aclsFor(auth.length > 0);
    this.acls = acls;
    this.commandTimeoutMs =
      checkMs('commandTimeoutMs', given.commandTimeoutMs, { min: 1 }) ?? DEFAULT_COMMAND_TIMEOUT_MS;
    this.sessionTimeoutMs = checkMs('sessionTimeoutMs', given.sessionTimeoutMs, {
      min: 1,
      max: MAX_SESSION_MS,
    });
    const basePath = resolveBasePath(given.basePath);
    const ensemble = servers.map(({ host, port }) => `${host}:${port}`).sort();
    this.place = `ZooKeeper ${ensemble.join(',')}${chroot}${basePath}`;
    this.paths = new LockPaths(chroot, basePath, checkFunction('path', given.path));
    const { commandTimeoutMs, places, paths, order, hosts } = this;
    const tls = resolveTls(given.tls);
    const session = new ZkSession({
      ...{ runtime, commandTimeoutMs },
      auth: () => auth,
      onLapse: () => hosts.atRisk(),
      onResumed: () => this.locks.resumed(),
      servers: dialers ?? servers.map((server) => dialerOf(server, tls)),
    });
    session.timeoutMs = this.sessionTimeoutMs ?? session.timeoutMs;
    this.session = session;
    this.empty = new EmptyContainers(runtime, session);
    this.parents = new NodeParents(runtime, session, acls, paths, this.empty);
    const heldNodes = new HeldNodes({
      ...{ runtime, session },
      remove: (place) => places.remove(place),
      atRisk: ({ finalKey }) => hosts.atRisk(finalKey),
      revocationRequested: ({ finalKey, owner }) => hosts.revocationRequested(finalKey, owner),
    });
    this.locks = new NodeLocks({
      ...{ runtime, session, places, acls, heldNodes },
      parents: this.parents,
      gaveToken: (token) => this.gaveToken(token),
    });
    const { locks, parents } = this;
    this.notes = new ZookeeperNotes({ ...{ runtime, session, acls, parents }, folder: paths.notesPath });
    this.processes = this.notes;
    const kind = { session, paths, order, places, locks };
    this.kinds = {
      exclusive: new ZookeeperKind('exclusive', kind),
      permit: new ZookeeperPermits(kind),
      read: new ZookeeperKind('read', kind),
      write: new ZookeeperKind('write', kind),
    };
  }

  get lease(): LeaseModel {
    return { type: 'session', timeoutMs: this.session.grantedMs };
  }

  /**
   * Begins the session, and checks what it may do.
   *
   * @throws {LockConfigurationError} when locks cannot work, with what to change
   */
  async open(host: StoreHost): Promise<void> {
    this.hosts.add(host);
    const { session, sessionTimeoutMs } = this;
    // The first service decides for all that share the store.
    if (!this.isOpened && sessionTimeoutMs === undefined)
      session.timeoutMs = Math.min(host.watchdogMs, MAX_SESSION_MS);
    this.isOpened = true;
    const { paths, parents, acls } = this;
    await checkZookeeper({ session, paths, parents, acls, sessionTimeoutMs });
    if (session.grantedMs === session.timeoutMs) return;
    host.warn(
      `ZooKeeper grants a session of ${session.grantedMs} ms instead of ${session.timeoutMs} ms, which watchdogMs asks for. ` +
        'A process without contact loses its locks after that time.',
    );
  }

  checkKey(finalKey: string): void {
    this.paths.check(finalKey);
  }

  async inspect(finalKey: string): Promise<KeyState | null> {
    return heldState(await this.stateOf(finalKey));
  }

  /** Resolves also with a key that has only waiters: these may wait for a permit. */
  private stateOf(finalKey: string): Promise<KeyState | null> {
    const path = this.paths.of(finalKey);
    return this.order.run(path, async () => {
      const { holders, waiting } = await nodesOf(this.locks, path);
      const [first] = [...holders, ...waiting];
      if (!first) return null;
      return {
        kind: holders.length > 0 ? first.kind : 'permit',
        holders: holders.map(({ owner }) => ({ owner, count: 1, remainingMs: Infinity })),
        waiting: waiting.map(({ owner }) => owner),
      };
    });
  }

  /** Each page reads the names of all nodes in the base path. */
  async list(request: ListRequest): Promise<ListReply> {
    const { paths, session } = this;
    if (paths.mayNest) throw new LockConfigurationError(HIDDEN_KEYS);
    const children = await session.request(getChildren(paths.basePath)).catch(unless([], CODE.noNode));
    const { page, cursor } = keyPageOf(paths.keysOf(children), request);
    const keys = await foundAt(page, async (finalKey) => {
      // A node of another client refuses that.
      const state = await this.stateOf(finalKey).catch(unless(null, CODE.noAuth));
      return state && { finalKey, state };
    });
    return { keys, cursor };
  }

  async forceUnlock(finalKey: string): Promise<boolean> {
    const path = this.paths.of(finalKey);
    return this.atHolders(path, ({ path: of, holders }, until) => {
      const deletions = holders.map(({ name }) => this.locks.delete(`${of}/${name}`, { until }));
      // Without them the key is free for a lock.
      if (of !== path) deletions.push(this.parents.remove([leasesIn(path), turnsIn(path)], until));
      return deletions;
    });
  }

  async revoke(finalKey: string): Promise<boolean> {
    const path = this.paths.of(finalKey);
    return this.atHolders(path, ({ path: of, holders }, until) => {
      if (of !== path)
        throw new StoreFailure(NOT_REVOCABLE, 'not-executed', { keyOnly: true, claimOnly: true });
      return holders.map(({ name }) => this.locks.ifThere(revocationOf(`${of}/${name}`), { until }));
    });
  }

  /** Sends requests about the holders of a key. Resolves with whether one of them was there. */
  private atHolders(
    path: string,
    send: (nodes: KeyNodes, until: number) => readonly Promise<boolean>[],
  ): Promise<boolean> {
    return this.order.run(path, async (sent) => {
      const until = this.session.timeLimit();
      const requests = send(await nodesOf(this.locks, path, { until }), until);
      sent();
      return (await Promise.all(requests)).includes(true);
    });
  }

  async ping(): Promise<void> {
    // The leader replies to this, so there is a quorum.
    await this.session.request(sync(this.paths.basePath));
  }

  close(): Promise<void> {
    this.notes.close();
    this.empty.close();
    return this.session.close({ keepsNodes: this.places.holdLocks });
  }

  private gaveToken(token: number): void {
    if (this.hasToldOfTokens || !this.isOpened) return;
    this.hasToldOfTokens = true;
    this.hosts.log(
      `The first fencing token is ${token}: ZooKeeper counts its changes. A table that has stored tokens of Redis or of ` +
        'a database refuses all tokens of ZooKeeper; set its tokens back when you move.',
    );
  }
}

printsOnly(ZooKeeperStore, ({ place }) => ({ place }));
