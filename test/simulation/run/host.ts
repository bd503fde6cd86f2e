import type { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { ConnectionRole } from '../../../lib/stores/redis/connection/redis-client.js';
import type { CreateRedisClient } from '../../../lib/stores/redis/connection/redis-settings.js';
import type { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { errorSeen } from '../../checker/history.js';
import type { ObjectSurroundings } from '../../checker/object-user.js';
import { RecordingStore } from '../../checker/recording-store.js';
import type { Core } from '../core-api.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import { SimProcess } from '../engine/sim-process.js';
import { Link } from '../network/link.js';
import type { ListenerPlan, Plan, ProcessPlan } from '../plan/plan.js';
import type { Quirks } from '../quirks.js';
import type { SimServer } from '../server/sim-server.js';
import { SimClient } from '../client/sim-client.js';
import { KEY_PREFIX, plainKey } from '../server/recorder.js';
import { Apps } from './apps.js';
import { withClaimsNoted, type ClaimsSent } from './claims-sent.js';
import { type LeaseWatch } from './lease-watch.js';

/** For how long a listener that blocks does so, in ms. */
const BLOCKED_MS = 7;

/** What all processes of a run share. */
export interface Surroundings {
  readonly agenda: Agenda;
  readonly chronicle: Chronicle;
  readonly server: SimServer;
  readonly core: Core;
  readonly quirks: Quirks;
  readonly claims: ClaimsSent;
}

/** One process with all that is in it: the core, its store, its connections. */
export class Host {
  readonly process: SimProcess;
  readonly links: { readonly command: Link; readonly subscriber: Link };
  readonly clients: { readonly command: SimClient; readonly subscriber: SimClient };
  readonly manager: LockManager;
  readonly apps: Apps;
  /** Whether its callers take fair locks. */
  readonly isFair: boolean;
  /** The leases its callers have. */
  readonly leases = new Set<LeaseWatch>();
  private readonly redis: RedisStore;
  private readonly store: RecordingStore;

  constructor(
    readonly plan: ProcessPlan,
    { seed, settings }: Plan,
    readonly around: Surroundings,
  ) {
    const { agenda, chronicle, server, core, quirks } = around;
    const { name, rate } = plan;
    this.isFair = settings.fair ?? false;
    const randomOf = (what: string) => new Random(`${what} of ${name} of ${seed}`);
    const { commandTimeoutMs, latencyMs } = settings;
    this.process = new SimProcess(
      name,
      agenda,
      chronicle,
      randomOf('timers'),
      rate,
      quirks.wallClock ?? false,
    );
    this.apps = new Apps(this.process);
    const link = (role: string) =>
      new Link(agenda, this.process, server, randomOf(role), latencyMs, commandTimeoutMs);
    this.links = { command: link('command'), subscriber: link('subscriber') };
    const made: Partial<Record<ConnectionRole, SimClient>> = {};
    const createClient: CreateRedisClient = (role, options) =>
      (made[role] = new SimClient(
        this.process,
        role === 'commands' ? this.links.command : this.links.subscriber,
        options,
      ));
    this.redis = new core.RedisStore({ redis: createClient, commandTimeoutMs, runtime: this.process });
    this.clients = { command: made.commands!, subscriber: made.subscriber! };
    this.store = new RecordingStore(withClaimsNoted(this.redis, around.claims), name, (event) =>
      this.process.record('keys' in event ? { ...event, keys: event.keys.map(plainKey) } : event),
    );
    const lockSettings = {
      ...core.DEFAULT_SETTINGS,
      keyPrefix: KEY_PREFIX,
      watchdogMs: settings.watchdogMs,
      maxWaiters: settings.maxWaiters ?? Infinity,
      shutdownGraceMs: settings.shutdownGraceMs,
    };
    const silent = { warn: () => undefined, log: () => undefined };
    this.process.onFreeze = () => this.look();
    this.manager = new core.LockManager(this.store, lockSettings, silent, this.process);
    for (const listener of plan.listeners ?? []) this.listen(listener);
  }

  /** What its callers need to use semaphores and latches. */
  get objects(): ObjectSurroundings {
    const { process, manager } = this;
    return {
      semaphore: (key) => manager.semaphore(key),
      countDownLatch: (key) => manager.countDownLatch(key),
      finalKey: (key) => key,
      record: (event) => process.record(event),
      sleep: (ms) => process.sleep(ms),
      leaveAfter: (ms, notify) => {
        if (ms === undefined) return { signal: undefined, close: () => undefined };
        const controller = new AbortController();
        const timer = process.setTimer(() => {
          notify();
          controller.abort(new Error('called off'));
        }, ms);
        return { signal: controller.signal, close: () => process.clearTimer(timer) };
      },
    };
  }

  get isIdle(): boolean {
    return this.process.crashed || Object.values(this.manager.usage).every((size) => size === 0);
  }

  /** Writes down what the callers believe now, where that has changed. False when nothing has run since. */
  look(): boolean {
    if (!this.process.touched) return false;
    this.process.touched = false;
    for (const lease of this.leases) lease.look();
    return true;
  }

  private listen({ on, nth, do: what }: ListenerPlan): void {
    let count = 0;
    this.manager.on(on, ({ key }) => {
      if (++count !== nth) return;
      if (what === 'block') this.process.freeze(BLOCKED_MS);
      else if (what === 'forceUnlock') this.note(what, this.manager.forceUnlock(key));
      else {
        const [watch] = this.leases;
        watch?.release();
        if (watch) this.note('release', watch.lease.release(), watch.id);
      }
    });
  }

  /** What comes of something that a listener began. */
  private note(doing: string, work: Promise<boolean | string>, lease?: string): void {
    work.then(
      (result) => this.process.record({ type: 'result', doing, lease, result: String(result) }),
      (error: unknown) => this.process.record({ type: 'result', doing, lease, error: errorSeen(error) }),
    );
  }

  /** Resolves when the app has started: the module looks whether its store can be reached. */
  async start(): Promise<void> {
    await this.redis.ping().catch(() => undefined);
  }

  shutDown(): void {
    if (this.process.crashed || this.process.stopping) return;
    this.process.stopping = true;
    this.process.record({ type: 'gone', how: 'shut-down' });
    void this.manager.shutDown();
  }

  close(): void {
    void this.manager.close();
  }

  reportUsage(): void {
    this.process.record({ type: 'usage', sizes: { ...this.manager.usage, watches: this.store.watches } });
  }

  /** After the end: what should not be there any more. */
  reportRemains(): void {
    const { subscriptions: channels } = this.redis;
    const { timersLeft: timers } = this.process;
    const commands = this.clients.command.pending + this.clients.subscriber.pending;
    this.process.record({ type: 'usage', sizes: { timers, commands, channels } });
  }
}
