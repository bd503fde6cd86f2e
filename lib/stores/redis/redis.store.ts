import { DEFAULT_COMMAND_TIMEOUT_MS } from '../../core/settings/lock-settings.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { systemRuntime, type Runtime } from '../../core/util/runtime.js';
import { printsOnly } from '../../core/util/printing.js';
import { checkChoice, checkMs, reading } from '../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../core/settings/option-names.js';
import type { LockStore, StoreHost } from '../../core/seam/lock-store.js';
import { EXPIRING } from '../../core/seam/lease-model.js';
import type { ListReply, ListRequest } from '../../core/seam/listing.js';
import { StoreHosts } from '../../core/seam/store-hosts.js';
import type { LatchStore, SemaphoreStore } from '../../core/seam/object-stores.js';
import type { ProcessNotes } from '../../core/seam/process-notes.js';
import type { KeyState, PermitState } from '../../core/seam/reply.js';
import type { RedisAddress } from './connection/redis-client.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { RedisFailure, isReplyError } from './connection/redis-failure.js';
import { StartingClients } from './connection/starting-clients.js';
import type { RedisTopology } from './connection/redis-topology.js';
import { evictionWarning, IS_SENTINEL, partWarning, scriptsWarning, warningsOfAll } from './diagnosis.js';
import { readServer, readTime, TOKENS_PER_MS } from './server-times.js';
import { BATCH_PARTS, type AnyKind } from './kinds/any-kind.js';
import { lacksRules, missingRules } from './kinds/exclusive/queue-rights.js';
import { FOREIGN_HOLDS, type ForeignHold } from '../../core/settings/foreign-hold.js';
import { onlyWith } from './kinds/foreign-holds.js';
import { RedisListing } from './listing.js';
import type { AllNodeKinds, AtNode, ServerTimes } from './quorum/node-store.js';
import { redisKinds, SCRIPTS } from './redis-kinds.js';
import type { RedisKeys } from './redis-keys.js';
import { topologyOf, type RedisSource } from './topology-of.js';
import { replicasWarning, resolveReplicas, type ReplicasOptions } from './replicas/replicas.js';

export interface RedisStoreOptions {
  /** Address of Redis; see {@link RedisSource}. */
  readonly redis: RedisSource;
  /** Time-out of one command, in ms; connecting before it may take as long again. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** Number of replicas that must acknowledge a hold before it counts. Default: do not wait for replicas. */
  readonly replicas?: ReplicasOptions | undefined;
  /**
   * Whether to use sharded Pub/Sub; for a cluster only. All processes that share locks must use the same. Default: true
   * when all servers that reply first have it (Redis 7 or later), as in Redisson 4.
   */
  readonly shardedPubSub?: boolean | undefined;
  /**
   * Meaning of a string at the name of a lock. Other lock libraries keep a string there while they hold the lock.
   * `'taken'`: the lock is held until the string has gone. `'error'`: a `LockStoreError`. Not for permits. Default:
   * `'error'`.
   */
  readonly foreignHold?: ForeignHold | undefined;
  /** @internal Clock, timers and ids, for tests. */
  readonly runtime?: Runtime | undefined;
}

/**
 * Keeps locks on one Redis server, behind Sentinel, or in a Redis Cluster, in Redisson's layout.
 *
 * Opens up to two connections to each server, and closes them. The one for commands opens at the first request for a
 * lock there. The one for messages opens when a caller first waits for a taken lock.
 *
 * @throws {LockConfigurationError} (from the constructor) when an option cannot be used
 *
 * @example
 * RedisLockModule.forRoot({ store: new RedisStore({ redis: 'redis://localhost:6379' }) });
 */
export class RedisStore implements LockStore {
  readonly name = 'Redis';
  readonly lease = EXPIRING;
  readonly hasCounters = true;
  readonly commandTimeoutMs: number;
  readonly kinds: AllNodeKinds;
  /** Address that the store connects to. */
  readonly address: RedisAddress;
  readonly semaphores: SemaphoreStore;
  readonly latches: LatchStore;
  readonly processes: ProcessNotes;
  readonly place: string;
  private readonly keys: RedisKeys;
  private readonly topology: RedisTopology;
  private readonly anyKind: AnyKind;
  private readonly listing: RedisListing;
  private readonly starting = new StartingClients();
  private readonly hosts = new StoreHosts();
  private readonly minReplicas: number;
  private readonly countsStrings: boolean;
  /** Connections that {@link diagnose} opened. */
  private readonly checks = new Set<RedisTopology>();
  private readonly notTaken: string | undefined;

  constructor(options: RedisStoreOptions) {
    if (typeof options !== 'object' || options === null) {
      // The value may hold a password.
      throw new LockConfigurationError(
        'RedisStore takes its options as an object: new RedisStore({ redis }).',
      );
    }
    const { runtime = systemRuntime(), ...given } = reading('The options of RedisStore', () => ({
      ...options,
    }));
    checkNames(given, 'RedisStore', OPTION_NAMES);
    const { redis, commandTimeoutMs, replicas, shardedPubSub } = given;
    this.countsStrings = checkChoice('foreignHold', given.foreignHold, FOREIGN_HOLDS) === 'taken';
    const timeoutMs = checkMs('commandTimeoutMs', commandTimeoutMs, { min: 1 }) ?? DEFAULT_COMMAND_TIMEOUT_MS;
    this.commandTimeoutMs = timeoutMs;
    const waited = resolveReplicas(replicas, timeoutMs);
    this.minReplicas = waited?.min ?? 0;
    const { topology, keys, warning } = topologyOf(redis, {
      timeoutMs,
      runtime,
      shardedPubSub,
      scripts: SCRIPTS,
      batchParts: BATCH_PARTS,
      waitsForReplicas: waited !== undefined,
      starting: this.starting,
    });
    this.topology = topology;
    // A new connection may lead to another server (a promoted replica), or to the same one without its data.
    topology.onAgain = () => this.hosts.atRisk();
    topology.onWarning = (warning) => this.hosts.warn(warning);
    this.notTaken = warning;
    this.keys = keys;
    this.place = `Redis ${topology.place}/${keys.name('')}`;
    this.address = topology.address;
    const kept = redisKinds(topology, keys, runtime, {
      countsStrings: this.countsStrings,
      replicas: waited,
    });
    this.kinds = kept.kinds;
    this.semaphores = kept.semaphores;
    this.latches = kept.latches;
    this.processes = kept.processes;
    this.anyKind = kept.anyKind;
    this.listing = new RedisListing(
      topology,
      keys,
      (finalKey) => this.anyKind.listed(finalKey),
      (finalKey, kind) => this.anyKind.waitedFor(finalKey, kind),
    );
  }

  /** @internal Number of channels that this process listens to; for tests. */
  get subscriptions(): number {
    return this.topology.subscriptions;
  }

  checkKey(finalKey: string): void {
    this.keys.check(finalKey);
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.anyKind.inspect(finalKey);
  }

  list(request: ListRequest): Promise<ListReply> {
    return this.listing.page(request);
  }

  permits(finalKey: string): Promise<PermitState | null> {
    return this.anyKind.permits(finalKey);
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.anyKind.forceUnlock(finalKey);
  }

  async ping(): Promise<void> {
    await this.topology.requestEach(({ connection }) =>
      // Thousands of health checks must not hold up renewals.
      connection.send({ command: 'ping', args: [], read: () => undefined, urgency: 'woken' }),
    );
  }

  /** Connects to nothing yet: a server that cannot be reached does not matter before the first lock. */
  open(host: StoreHost): Promise<void> {
    this.hosts.add(host);
    if (host.starting) this.starting.begin(host.starting);
    if (this.notTaken) host.warn(this.notTaken);
    const prefix = this.keys.name(host.keyPrefix);
    if (this.countsStrings && prefix !== '') host.log(onlyWith(prefix));
    return Promise.resolve();
  }

  /** Returns the server's uptime and clock. INFO counts whole seconds, of which the last may not be over. */
  async serverTimes(): Promise<ServerTimes> {
    if (this.topology.hasSlots) {
      throw new RedisFailure('a cluster is no node of a quorum: it has many servers', 'not-executed', {});
    }
    const times = await this.topology.requestEach(async ({ connection }) => {
      const [server, clockMs] = await Promise.all([
        connection.send({ command: 'info', args: ['server'], read: readServer }),
        connection.send({ command: 'time', args: [], read: readTime }),
      ]);
      return { ...server, clockMs };
    });
    return { ...times[0]!, tokensPerMs: TOKENS_PER_MS };
  }

  /**
   * Resolves with warnings about the servers: no scripts, eviction of locks, a replica, or a server of a cluster.
   * Without the right to INFO, only scripts and rights are checked.
   *
   * Closes the connections that it opens: an app that then fails to start would not close them.
   *
   * @throws {LockConfigurationError} for a Sentinel; and when the Redis user lacks rights for wait queues, unless `noQueue`
   */
  async diagnose({ noQueue = false }: AtNode = {}): Promise<readonly string[]> {
    // The store's own connections do not keep the process alive while its app starts.
    const check = this.topology.duplicate();
    if (check) this.checks.add(check);
    const topology = check ?? this.topology;
    try {
      const replies = await topology.requestEach(async (server) => ({
        name: server.name,
        warnings: await this.diagnoseServer(server.connection),
        missing:
          noQueue || !topology.hasQueues ? [] : await missingRules(server, this.keys, topology.publish),
      }));
      const lacking = replies.filter(({ missing }) => missing.length > 0);
      if (lacking.length > 0) throw new LockConfigurationError(lacksRules(lacking));
      return warningsOfAll(replies);
    } finally {
      check?.close();
      if (check) this.checks.delete(check);
    }
  }

  private async diagnoseServer(connection: RedisConnection): Promise<readonly string[]> {
    await connection.opened();
    const info = (section: string): Promise<string> =>
      connection.send({ command: 'info', args: [section], read: String }).catch((failure: unknown) => {
        if (failure instanceof RedisFailure && isReplyError(failure.cause)) return '';
        throw failure;
      });
    const { minReplicas, topology } = this;
    const sections = ['server', 'memory', 'replication', 'cluster'];
    const [about, memory, replication, cluster] = await Promise.all(sections.map(info));
    if (/^redis_mode:sentinel/m.test(about!)) throw new LockConfigurationError(IS_SENTINEL);
    return [
      await scriptsWarning(connection),
      partWarning(replication!, cluster!, { isInCluster: topology.hasSlots }),
      evictionWarning(memory!),
      minReplicas > 0 ? replicasWarning(replication!, minReplicas) : undefined,
    ].filter(isText);
  }

  close(): Promise<void> {
    for (const check of this.checks) check.close();
    this.topology.close();
    return Promise.resolve();
  }
}

printsOnly(RedisStore, ({ place }) => ({ place }));

const OPTION_NAMES: Names<Omit<RedisStoreOptions, 'runtime'>> = {
  redis: true,
  commandTimeoutMs: true,
  replicas: true,
  shardedPubSub: true,
  foreignHold: true,
};

const isText = (text: string | undefined): text is string => text !== undefined;
