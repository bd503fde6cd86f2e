import type { Runtime } from '../../../core/util/runtime.js';
import type { ClockSeen } from './clocks.js';
import type { NodeStore } from './node-store.js';

/**
 * Maximum age of the server info, in ms. From `LOOK_AGAIN_MS` on it is refreshed beside a request, from `LOOK_FIRST_MS`
 * on before the request counts.
 */
const LOOK_AGAIN_MS = 10_000;
export const LOOK_FIRST_MS = 60_000;

export interface Seen {
  readonly at: number;
  /** Latest possible start of the server, on the runtime's clock. */
  readonly startedAt: number;
  readonly clock: ClockSeen;
  /** Id of the server's run. */
  readonly serverId: string | undefined;
  /** See `ServerTimes.tokensPerMs`. */
  readonly tokensPerMs: number | undefined;
}

/** One run of a server, from its start to its end. */
interface Run {
  readonly serverId: string;
  readonly startedAt: number;
  /** Time at which it was last seen. */
  readonly lastAt: number;
}

/** The info on a node's server over the current connection: its start and its clock. */
export class ServerInfo {
  /** Epoch: number of new connections so far. */
  epoch = 0;
  private current: Seen | undefined;
  private clock: ClockSeen | undefined;
  private run: Run | undefined;
  private looking: Promise<void> | undefined;

  constructor(
    private readonly store: NodeStore,
    private readonly runtime: Runtime,
  ) {}

  get seen(): Seen | undefined {
    return this.current;
  }

  /** Last known clock, perhaps from an earlier connection. */
  get lastClock(): ClockSeen | undefined {
    return this.clock;
  }

  /** Records a new connection, which may lead to a restarted server. */
  connectedAgain(): void {
    this.epoch += 1;
    this.current = undefined;
    this.looking = undefined;
  }

  /** Refreshes old server info. Returns a promise when requests have to wait for it before they count. */
  lookWhereDue(): Promise<void> | undefined {
    const { store, current, runtime } = this;
    if (!store.serverTimes) return undefined;
    const age = current ? runtime.now() - current.at : Infinity;
    if (age < LOOK_AGAIN_MS) return undefined;
    const looking = (this.looking ??= this.look().finally(() => {
      if (this.looking === looking) this.looking = undefined;
    }));
    if (age >= LOOK_FIRST_MS) return looking;
    looking.catch(() => undefined);
    return undefined;
  }

  /** Asks the server for its times, if its store can. */
  async look(): Promise<void> {
    const { epoch, runtime } = this;
    const sentAt = runtime.now();
    const times = await this.store.serverTimes?.();
    if (!times || epoch !== this.epoch) return;
    const { upForMs, clockMs, serverId, tokensPerMs } = times;
    const now = runtime.now();
    const uncertainMs = (now - sentAt) / 2;
    this.clock = { aheadMs: clockMs - (sentAt + uncertainMs), uncertainMs };
    const startedAt = this.startOf(serverId, now - upForMs, now);
    this.current = { at: now, startedAt, clock: this.clock, serverId, tokensPerMs };
  }

  /**
   * Returns when a run of the server began, at the latest. A server measures its uptime with a clock that may have been
   * set since, so the first value of a run stays valid. A run that was not there at the last look began after that
   * look.
   */
  private startOf(serverId: string | undefined, reported: number, now: number): number {
    if (serverId === undefined) return reported;
    const { run } = this;
    const began = run === undefined || reported >= run.lastAt ? reported : now;
    const startedAt = run?.serverId === serverId ? run.startedAt : began;
    this.run = { serverId, startedAt, lastAt: now };
    return startedAt;
  }
}
