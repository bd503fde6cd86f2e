import type { ChainableCommander, Redis } from 'ioredis';
import { until } from '../../support/async.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { labNow } from '../history/lab-clock.js';
import type { Scribe } from '../history/scribe.js';
import { HoldWatch } from './hold-watch.js';
import { RedisMonitor } from './redis-monitor.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import type { ServerNode } from './server-node.js';
import { ServerPulse } from './server-pulse.js';

export interface RedisNodeOptions {
  /** `always`: an append-only file that has every write before its answer is sent. `none`: nothing survives. */
  readonly persistence: 'always' | 'none';
  /** Runs the server with a clock that can be set. */
  readonly settableClock?: boolean;
}

/** How long a slow server is felt after its late answer, in ms. */
const FELT_MS = 30;
/** Redis looks after its clients once in so many commands that it loads. */
const LOADED_BETWEEN_LOOKS = 1_024;
const LOAD_DELAY_MICROS = 100;

/** A Redis server under observation: what it is asked and how quick it is goes into the history. */
export class RedisNode implements ServerNode {
  private readonly monitor: RedisMonitor;
  private readonly pulse: ServerPulse;
  /** How many keys are there only to be loaded. */
  private fillers = 0;

  private constructor(
    readonly server: RedisServer,
    readonly options: RedisNodeOptions,
    /** Lines of the configuration that the next start is to have. */
    private readonly nextStart: string[],
    private readonly clock: ServerClock | undefined,
    readonly holds: HoldWatch,
    private readonly scribe: Scribe,
  ) {
    this.pulse = new ServerPulse(server, (from, until) =>
      scribe.trouble('Redis is slow', from, until + FELT_MS),
    );
    this.monitor = new RedisMonitor(server.port, (command) =>
      holds.take(command, this.pulse.momentOf(command.serverMs)),
    );
  }

  static async start(options: RedisNodeOptions, keyPrefix: string, scribe: Scribe): Promise<RedisNode> {
    const clock = options.settableClock ? await ServerClock.create() : undefined;
    const config: string[] = [];
    const server = await RedisServer.start({
      ...(options.persistence === 'always' && { appendFsync: 'always' }),
      config,
      equipment: clock,
    });
    const holds = new HoldWatch(keyPrefix, scribe.write);
    const node = new RedisNode(server, options, config, clock, holds, scribe);
    await node.observed();
    return node;
  }

  /** Resolves when everything that the server does is seen. */
  async observed(): Promise<void> {
    await until(() => this.monitor.isAttached && this.pulse.isKnown, {
      what: 'the server is under observation',
    });
  }

  /** Kills the server. Its last answers may get out before what the observer is told of them. */
  async kill(): Promise<void> {
    this.scribe.write({ type: 'unseen', at: labNow() });
    await this.server.kill('SIGKILL');
  }

  /** Takes in that the server, which was killed, has lost its data: after all that it did before has been seen. */
  async lostAll(): Promise<void> {
    await until(() => !this.monitor.isAttached, { what: 'the last commands of the killed server are seen' });
    this.holds.allLost(labNow());
  }

  /** Starts the server after it was killed, and resolves when it serves. */
  async startAgain({ keepData }: { keepData: boolean }): Promise<void> {
    await this.server.restart({ keepData });
    await this.observed();
  }

  /** Starts it with its data, and lets it take its time over that; see {@link fill}. */
  async startSlowly(): Promise<void> {
    this.nextStart.push(`key-load-delay ${LOAD_DELAY_MICROS}`);
    try {
      await this.startAgain({ keepData: true });
    } finally {
      this.nextStart.length = 0;
      await this.server.cli('CONFIG', 'SET', 'key-load-delay', 0);
    }
  }

  /** Fills the server with so much that loading it takes about this long. */
  async fill(loadMs: number): Promise<void> {
    const client = this.server.adminClient();
    try {
      await this.pipeline(client, (pipeline, key) => pipeline.del(key));
      // Without it everything that was ever done would be done again.
      await client.bgrewriteaof();
      await until(async () => (await client.info('persistence')).includes('aof_rewrite_in_progress:0'), {
        what: 'the append-only file is rewritten',
      });
      // Such a short sleep takes about half as long again.
      const wanted = Math.ceil((loadMs * 1_000) / (LOAD_DELAY_MICROS * 1.5));
      this.fillers = Math.max(2 * LOADED_BETWEEN_LOOKS, wanted);
      await this.pipeline(client, (pipeline, key) => pipeline.set(key, ''));
    } finally {
      client.disconnect();
    }
  }

  private async pipeline(
    client: Redis,
    add: (pipeline: ChainableCommander, key: string) => ChainableCommander,
  ): Promise<void> {
    const pipeline = client.pipeline();
    for (let i = 0; i < this.fillers; i++) add(pipeline, `filler:${i}`);
    await pipeline.exec();
  }

  /** Sets the server's clock forward, or back. */
  jump(ms: number): void {
    if (!this.clock) throw new Error('this server’s clock cannot be set');
    this.clock.jump(ms);
    this.pulse.jumped(ms);
    this.holds.clockJumped(ms, labNow());
  }

  /** The final keys of the holds that are there. */
  async heldKeys(keyPrefix: string): Promise<string[]> {
    return (await this.server.cli('KEYS', `${keyPrefix}*`)) as string[];
  }

  /** Writes down the leases that have run out by now. */
  settle(): void {
    this.holds.settle(labNow());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.monitor.close();
    this.pulse.close();
    await this.server.stop();
  }
}
