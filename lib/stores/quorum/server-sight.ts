import type { Runtime } from '../../core/runtime.js';
import type { LockStore } from '../../core/seam/lock-store.js';
import type { ClockSeen } from './clocks.js';

/** How old what is known of a server may be, in ms: then it is asked again beside a request, or before one counts. */
const LOOK_AGAIN_MS = 10_000;
const LOOK_FIRST_MS = 60_000;

/** What is known of a server. */
interface Seen {
  readonly at: number;
  /** It was started then at the latest, on the runtime's clock. */
  readonly startedAt: number;
  readonly clock: ClockSeen;
  /** Names its run. */
  readonly serverId: string | undefined;
  /** See `ServerTimes.tokensPerMs`. */
  readonly tokensPerMs: number | undefined;
}

/** One run of a server, from its start to its end. */
interface Run {
  readonly serverId: string;
  readonly startedAt: number;
  /** When it was last seen. */
  readonly lastAt: number;
}

/** What is known of a node's server over the connection that there is: since when it is up, and what its clock says. */
export class ServerSight {
  /** How often there was another connection. */
  era = 0;
  private current: Seen | undefined;
  private clock: ClockSeen | undefined;
  private run: Run | undefined;
  private looking: Promise<void> | undefined;

  constructor(
    private readonly store: LockStore,
    private readonly runtime: Runtime,
  ) {}

  get seen(): Seen | undefined {
    return this.current;
  }

  /** What was last known of its clock, be it over another connection. */
  get lastClock(): ClockSeen | undefined {
    return this.clock;
  }

  /** There is another connection, which may lead to a server that has restarted. */
  connectedAgain(): void {
    this.era += 1;
    this.current = undefined;
    this.looking = undefined;
  }

  /** Asks the server for its times where they are not known, or old. What counts only with them has to wait for that. */
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
    const { era, runtime } = this;
    const sentAt = runtime.now();
    const times = await this.store.serverTimes?.();
    if (!times || era !== this.era) return;
    const { upForMs, clockMs, serverId, tokensPerMs } = times;
    const now = runtime.now();
    const uncertainMs = (now - sentAt) / 2;
    this.clock = { aheadMs: clockMs - (sentAt + uncertainMs), uncertainMs };
    const startedAt = this.startOf(serverId, now - upForMs, now);
    this.current = { at: now, startedAt, clock: this.clock, serverId, tokensPerMs };
  }

  /**
   * When a run of the server began, at the latest. A server counts its time by a clock that may have been set since, so what it
   * told first of a run stands; and a run that is another one than at the last look began after that.
   */
  private startOf(serverId: string | undefined, told: number, now: number): number {
    if (serverId === undefined) return told;
    const { run } = this;
    const began = run === undefined || told >= run.lastAt ? told : now;
    const startedAt = run?.serverId === serverId ? run.startedAt : began;
    this.run = { serverId, startedAt, lastAt: now };
    return startedAt;
  }
}
