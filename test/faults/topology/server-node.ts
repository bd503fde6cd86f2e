import { RedisServer, type RedisServerOptions } from '../../support/servers/redis-server.js';
import { labNow } from '../history/lab-clock.js';
import type { Scribe } from '../history/scribe.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { ServerPulse } from './server-pulse.js';

/** A Redis server of a topology, as faults know it. */
export interface ServerNode extends AsyncDisposable {
  readonly server: RedisServer;
  kill(): Promise<void>;
  /** Starts it after it was killed, and resolves when it serves. */
  startAgain(how: { readonly keepData: boolean }): Promise<void>;
  /** Sets its clock forward, or back. */
  jump(ms: number): void;
}

/** How long a slow server is felt after its late answer, in ms. */
const FELT_MS = 30;

/** One of several servers. What it is asked is not watched: what it has to do with the locks, its callers tell. */
export class PlainNode implements ServerNode {
  /** When it was started last, on the clock of the history. */
  startedAt = labNow();
  /** Its clock was set in this round: what it keeps may last for hours longer than anybody asked for. */
  clockWasSet = false;
  private readonly pulse: ServerPulse | undefined;

  private constructor(
    readonly server: RedisServer,
    private readonly clock: ServerClock | undefined,
    scribe: Scribe | undefined,
  ) {
    this.pulse =
      scribe &&
      new ServerPulse(server, (from, until) => scribe.trouble('a server is slow', from, until + FELT_MS));
  }

  /** @param settableClock it may be ahead from the beginning, by so many ms */
  static async start(
    options: RedisServerOptions,
    scribe: Scribe,
    settableClock?: { readonly aheadMs: number },
  ): Promise<PlainNode> {
    const clock = settableClock && (await ServerClock.create());
    if (settableClock && settableClock.aheadMs !== 0) clock?.jump(settableClock.aheadMs);
    const server = await RedisServer.start({ ...options, equipment: clock });
    return new PlainNode(server, clock, scribe);
  }

  /** A server that somebody else has started. */
  static of(server: RedisServer, clock?: ServerClock): PlainNode {
    return new PlainNode(server, clock, undefined);
  }

  async kill(): Promise<void> {
    await this.server.kill('SIGKILL');
  }

  async startAgain(how: { readonly keepData: boolean }): Promise<void> {
    await this.server.restart(how);
    this.startedAt = labNow();
  }

  jump(ms: number): void {
    if (!this.clock) throw new Error('this server’s clock cannot be set');
    this.clockWasSet = true;
    this.clock.jump(ms);
    this.pulse?.jumped(ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pulse?.close();
    await this.server.stop();
  }
}
