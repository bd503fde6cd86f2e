import { Redis } from 'ioredis';
import type { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { defaultCall, LockCall } from '../../../lib/core/settings/lock-call.js';
import type { DEFAULT_SETTINGS, LockSettings } from '../../../lib/core/settings/lock-settings.js';
import type {
  QUEUE_ACQUIRE,
  QUEUE_FORCE_UNLOCK,
  QUEUE_KEEP,
  QUEUE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import type { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { until } from '../../support/async.js';
import type { RedisServer } from '../../support/servers/redis-server.js';

/** What a mistake can be in, of the library or of a copy with the mistake. */
export interface OnRedis {
  readonly QUEUE_ACQUIRE: typeof QUEUE_ACQUIRE;
  readonly QUEUE_RELEASE: typeof QUEUE_RELEASE;
  readonly QUEUE_KEEP: typeof QUEUE_KEEP;
  readonly QUEUE_FORCE_UNLOCK: typeof QUEUE_FORCE_UNLOCK;
  readonly RedisStore: typeof RedisStore;
  readonly LockManager: typeof LockManager;
  readonly defaultCall: typeof defaultCall;
  readonly DEFAULT_SETTINGS: typeof DEFAULT_SETTINGS;
}

/** How a waiter asks. */
export interface RequestOptions {
  /** How long its place lives, in ms; 0: it does not wait. Default: 5,000. */
  readonly aliveMs?: number;
  /** Nobody hears what it is told. Default: false. */
  readonly notSubscribed?: boolean;
  readonly tokens?: number;
}

/** A process, as the library makes it, on the server. */
export interface Process extends AsyncDisposable {
  readonly manager: LockManager;
  readonly store: RedisStore;
  /** What a caller asks for when it says nothing. */
  call(more?: Partial<LockCall>): LockCall;
}

const GRANTS = 'nest_redis_lock:grant:';
const LEASE_MS = 30_000;
export const PROVISIONAL_LEASE_MS = 10_000;

/** A real server, the scripts of the line, and processes: for schedules in which no fault of a machine plays a part. */
/** The id of a process, as this library makes them: what others hold is looked at more often. */
const idOf = (process: string): string =>
  `${Buffer.from(process).toString('hex')}-0000-8000-8000-000000000000`;

export class RedisStage implements AsyncDisposable {
  /** What the processes a to d were told on their channels. */
  readonly notifications: string[] = [];
  private readonly clients: Redis[] = [];
  private readonly processes: Process[] = [];
  private owners = 0;

  private constructor(
    private readonly library: OnRedis,
    private readonly server: RedisServer,
    readonly admin: Redis,
    readonly key: string,
  ) {}

  static async open(library: OnRedis, server: RedisServer, key: string): Promise<RedisStage> {
    const admin = new Redis(server.url);
    const stage = new RedisStage(library, server, admin, key);
    const subscriber = admin.duplicate();
    stage.clients.push(admin, subscriber);
    subscriber.on('message', (_channel: string, message: string) => stage.notifications.push(message));
    await subscriber.subscribe(...['a', 'b', 'c', 'd'].map((process) => GRANTS + idOf(process)));
    return stage;
  }

  /** Where the line of the key is. */
  get queueKey(): string {
    return `nest_redis_lock:queue:{${this.key}}`;
  }

  /** The name of an owner; of the processes a to d somebody hears the messages. */
  owner(process: string): string {
    return `${idOf(process)}:${++this.owners}`;
  }

  acquire(
    owner: string,
    { aliveMs = 5_000, notSubscribed = false, tokens = 1 }: RequestOptions = {},
  ): Promise<unknown> {
    const entryTerms =
      aliveMs > 0 ? `${aliveMs} ${PROVISIONAL_LEASE_MS} ${tokens} ${notSubscribed ? 1 : 0}` : '';
    return this.run(this.library.QUEUE_ACQUIRE, owner, LEASE_MS, tokens, entryTerms);
  }

  /** Requests the owner's hold again, with a shorter lease. */
  reacquire(owner: string, leaseMs: number): Promise<unknown> {
    return this.run(this.library.QUEUE_ACQUIRE, owner, leaseMs, 1, '', 'PUBLISH');
  }

  /** Resolves with a list of the announcements about the hold, to which each new one is added. */
  async announcements(): Promise<readonly string[]> {
    const channel = `redisson_lock__channel:{${this.key}}`;
    const received: string[] = [];
    // The same connection as for grants, so that `allReceived` is about these, too.
    const subscriber = this.clients[1]!;
    subscriber.on('message', (on: string, message: string) => on === channel && received.push(message));
    await subscriber.subscribe(channel);
    return received;
  }

  release(owner: string, as = this.admin): Promise<unknown> {
    return as.eval(this.library.QUEUE_RELEASE, 3, ...this.keys, owner, 'PUBLISH', 0);
  }

  keep(owner: string, notSubscribed = 0): Promise<unknown> {
    return this.run(this.library.QUEUE_KEEP, owner, 5_000, notSubscribed);
  }

  force(): Promise<unknown> {
    return this.run(this.library.QUEUE_FORCE_UNLOCK, 'PUBLISH');
  }

  /** Who has the key. */
  async holder(): Promise<string | undefined> {
    return Object.keys(await this.admin.hgetall(this.key))[0];
  }

  /** Who stands in line, in no order. */
  async waiting(): Promise<string[]> {
    const names = await this.admin.hkeys(this.queueKey);
    return names.filter((name) => name.startsWith('@')).map((name) => name.slice(1));
  }

  /** Resolves when so many stand in line. */
  async waitingAre(count: number): Promise<string[]> {
    return until(async () => {
      const owners = await this.waiting();
      return owners.length === count && owners;
    });
  }

  /** Resolves when the owner stands in line, and its process hears what it is told. */
  async queuedAndSubscribed(owner: string): Promise<void> {
    await until(async () => {
      const entries = Object.values(await this.admin.hgetall(this.queueKey));
      return entries.some((entry) => entry.endsWith(` 0 ${owner}`));
    });
  }

  /** Resolves when all that was said before has been heard. */
  async allReceived(): Promise<void> {
    const mark = `mark ${++this.owners}`;
    await this.admin.publish(GRANTS + idOf('d'), mark);
    await until(() => this.notifications.includes(mark));
    this.notifications.splice(this.notifications.indexOf(mark), 1);
  }

  /** A client that may do everything but this. */
  async userWithout(command: string): Promise<Redis> {
    const [username, password] = ['less', 'secret'];
    await this.admin.call(
      'ACL',
      'SETUSER',
      username,
      'reset',
      'on',
      `>${password}`,
      '~*',
      '&*',
      '+@all',
      `-${command}`,
    );
    const client = new Redis({ ...this.server.clientOptions(), username, password });
    this.clients.push(client);
    return client;
  }

  /** A process with the library in it. */
  process(settings: Partial<LockSettings> = {}): Process {
    const { RedisStore, LockManager, DEFAULT_SETTINGS, defaultCall } = this.library;
    const store = new RedisStore({ redis: this.server.url });
    const all = { ...DEFAULT_SETTINGS, keyPrefix: '', shutdownGraceMs: 0, ...settings };
    const silent = { log: () => undefined, warn: () => undefined };
    const manager = new LockManager(store, all, silent);
    const process: Process = {
      manager,
      store,
      call: (more = {}) => ({ ...defaultCall(all), ...more }),
      [Symbol.asyncDispose]: () => manager.close(),
    };
    this.processes.push(process);
    return process;
  }

  /** A claim of a waiter that the core does not know of. */
  claim(owner: string): Extract<Claim, { kind: 'exclusive' }> {
    const entryTerms = { aliveMs: 5_000, provisionalLeaseMs: PROVISIONAL_LEASE_MS, tokens: 1 };
    return {
      kind: 'exclusive',
      finalKey: this.key,
      owner,
      leaseMs: LEASE_MS,
      tokens: 1,
      waits: true,
      entryTerms,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.processes.map((process) => process[Symbol.asyncDispose]()));
    await this.admin.flushall();
    for (const client of this.clients) client.disconnect();
  }

  private get keys(): [string, string, string] {
    return [this.key, 'nest_redis_lock:fence:{7}', this.queueKey];
  }

  private run(script: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.admin.eval(script, 3, ...this.keys, ...args);
  }
}
