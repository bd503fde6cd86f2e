import type { Runtime } from '../../../core/util/runtime.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import type { Commands } from '../connection/commands.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { isReplyError, RedisFailure, unwrapped } from '../connection/redis-failure.js';
import { type OfClaim, requestFor, type Script } from '../connection/script.js';
import type { BatchPart, ScriptRun, SharedRun } from '../connection/script-batch.js';
import { pause } from '../connection/timers.js';
import { sharded } from './sharded-scripts.js';
import { readRedirect, slotWithoutServer, type NodeAddress, type Redirect } from './slots.js';

/** Pause before a slot whose keys are moving is asked again, in ms. */
const TRY_AGAIN_MS = 10;
/** Maximum number of redirects to follow without a pause. */
const AT_ONCE = 3;

export interface CommandsHost {
  readonly timeoutMs: number;
  readonly runtime: Runtime;
  readonly isSharded: boolean;
  /** Returns the connection to the server that has the name; undefined when that is unknown. */
  connectionTo(name: string): RedisConnection | undefined;
  /** Resolves when there is a connection to the server that has the name. */
  openedTo(name: string): Promise<unknown>;
  /** Returns whether the connection leads to a server that has slots. */
  isNeeded(connection: RedisConnection): boolean;
  /** Called when a server says that another one has the slot. */
  moved(slot: number, to: NodeAddress): void;
  /** Called when a server says that the cluster is down: another one may know better. */
  lookSoon(): void;
  /** Whether to follow ASK to a server that imports the slot. Otherwise the request waits until that server has it. */
  readonly followsAsk: boolean;
  /** Returns a connection to a server that is importing a slot. */
  connectionAt(address: NodeAddress): RedisConnection;
  hostOf(connection: RedisConnection): string;
}

/** A run of a script, and the function that reads its reply. */
interface Requested<T> {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly read: (reply: unknown) => T;
  readonly claim?: OfClaim | undefined;
}

/**
 * Runs scripts at the servers that have their keys. A server that no longer has a slot refuses a request before it does
 * anything. So the request is sent again to the slot's server, within the command time-out.
 */
export class ClusterCommands implements Commands {
  private readonly parts = new WeakMap<BatchPart, BatchPart>();

  constructor(private readonly host: CommandsHost) {}

  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
    claim?: OfClaim,
  ): Promise<T> {
    return this.routed({ script, keys, args, read, claim });
  }

  runShared<T>(run: SharedRun, read: (reply: unknown) => T): Promise<T> {
    return new Promise<T>((resolve, reject) =>
      this.share({ ...run, read, resolve: resolve as (value: unknown) => void, reject }),
    );
  }

  share(run: ScriptRun): void {
    const { part, keys, args, read, claim, resolve, reject } = run;
    const requested: Requested<unknown> = { script: part.script, keys, args, read, claim };
    const connection = this.host.connectionTo(keys[0]!);
    if (!connection) return void this.routed(requested).then(resolve, reject);
    const elsewhere = (failure: unknown): void =>
      void this.elsewhere(requested, failure, connection).then(resolve, reject);
    connection.share({ ...run, part: this.partFor(part), reject: elsewhere });
  }

  failureOf(name: string, owner: string): StoreFailure | undefined {
    return this.host.connectionTo(name)?.failureOf(name, owner);
  }

  private partFor(part: BatchPart): BatchPart {
    if (!this.host.isSharded) return part;
    const known = this.parts.get(part);
    if (known) return known;
    const own = { ...part, script: sharded(part.script) };
    this.parts.set(part, own);
    return own;
  }

  private async routed<T>(requested: Requested<T>): Promise<T> {
    const { host } = this;
    const [name] = requested.keys as [string];
    if (!host.connectionTo(name)) await host.openedTo(name);
    const connection = this.connectionTo(name);
    try {
      return await this.request(requested, connection);
    } catch (failure) {
      return this.elsewhere(requested, failure, connection);
    }
  }

  /** Sends a request that was refused because of its slot to the slot's server; throws any other failure. */
  private async elsewhere<T>(requested: Requested<T>, first: unknown, firstAt: RedisConnection): Promise<T> {
    const { host } = this;
    const { runtime } = host;
    const giveUpAt = runtime.now() + host.timeoutMs;
    let [failure, at] = [first, firstAt];
    for (let hops = 1; ; hops++) {
      const redirect = this.redirectOf(failure, at);
      if (!redirect || runtime.now() >= giveUpAt) throw failure;
      // Pause: servers that disagree redirect a client in a circle.
      if (redirect.kind === 'TRYAGAIN' || hops > AT_ONCE) await pause(runtime, TRY_AGAIN_MS);
      try {
        if (redirect.kind === 'ASK' && host.followsAsk) {
          at = host.connectionAt(redirect.to);
          return await this.sendToImporter(requested, at);
        }
        if (redirect.kind === 'ASK') await pause(runtime, TRY_AGAIN_MS);
        if (redirect.kind === 'MOVED') host.moved(redirect.slot, redirect.to);
        at = this.connectionTo(requested.keys[0]!);
        return await this.request(requested, at);
      } catch (error) {
        failure = error;
      }
    }
  }

  private request<T>(requested: Requested<T>, connection: RedisConnection): Promise<T> {
    const { script, keys, args, read, claim } = requested;
    return connection.run(this.scriptFor(script), keys, args, read, claim);
  }

  /**
   * Runs a script at a server that is importing the slot, which serves only the one command after ASKING. Sends the
   * script in full, because a retry after NOSCRIPT would need another ASKING.
   */
  private async sendToImporter<T>(
    { script, keys, args, read }: Requested<T>,
    at: RedisConnection,
  ): Promise<T> {
    await at.opened();
    at.send({ command: 'asking', args: [], read: () => undefined }).catch(() => undefined);
    return at.send(requestFor(this.scriptFor(script), keys, args, read).inFull!());
  }

  private scriptFor(script: Script): Script {
    return this.host.isSharded ? sharded(script) : script;
  }

  private connectionTo(name: string): RedisConnection {
    const connection = this.host.connectionTo(name);
    if (connection) return connection;
    throw slotWithoutServer(name);
  }

  private redirectOf(failure: unknown, at: RedisConnection): Redirect | undefined {
    if (!(failure instanceof RedisFailure) || failure.outcome !== 'not-executed') return undefined;
    if (isReplyError(failure.cause)) {
      const reply = unwrapped(failure.cause.message);
      if (reply.startsWith('CLUSTERDOWN')) this.host.lookSoon();
      return readRedirect(reply, this.host.hostOf(at));
    }
    // The request was waiting for a server that has been replaced.
    return this.host.isNeeded(at) ? undefined : { kind: 'TRYAGAIN' };
  }
}
