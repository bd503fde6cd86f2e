import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HistoryEvent } from '../../checker/history.js';
import { guardFolder } from '../../support/process-guard.js';
import { TestWorker } from '../../support/worker.js';
import { HistoryReader } from '../history/history-file.js';
import { clockEnvironment } from '../history/lab-clock.js';
import { Scribe } from '../history/scribe.js';
import type { FromRegister, ToRegister } from '../register/register.process.js';
import { SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { RedisNode, type RedisNodeOptions } from './redis-node.js';
import { Seat, type SeatOptions } from './seat.js';
import type { Fitness, Topology } from './topology.js';
import { SCRATCH } from '../../support/scratch.js';

export interface SingleRedisOptions extends RedisNodeOptions {
  readonly workers: number;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  /** What the workers' apps are set to. */
  readonly settings?: WorkerSettings;
}

const REGISTER = new URL('../register/register.process.ts', import.meta.url);

type RegisterProcess = TestWorker<ToRegister, FromRegister>;

/** One Redis server, workers behind lines of their own, and the register. */
export class SingleRedis implements Topology {
  seats: readonly Seat[] = [];
  private seatCount = 0;

  private constructor(
    readonly name: string,
    readonly nodes: readonly [RedisNode],
    readonly scribe: Scribe,
    readonly fitness: Fitness,
    private readonly register: RegisterProcess,
    private readonly registerHistory: HistoryReader,
    private readonly seatOptions: SeatOptions,
  ) {}

  static async start({
    workers,
    library,
    settings = SETTINGS,
    ...nodeOptions
  }: SingleRedisOptions): Promise<SingleRedis> {
    const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-faults-'));
    guardFolder(folder);
    const scribe = new Scribe();
    const historyPath = join(folder, 'register.jsonl');
    const register: RegisterProcess = TestWorker.start(REGISTER, {
      args: [historyPath],
      env: clockEnvironment,
    });
    const [node, { port: registerPort }] = await Promise.all([
      RedisNode.start(nodeOptions, settings.keyPrefix, scribe),
      register.next('listening'),
    ]);
    const { persistence, settableClock = false } = nodeOptions;
    const seatOptions: SeatOptions = { server: node.server, registerPort, folder, settings };
    const keepsData = persistence === 'always';
    const name = [keepsData ? 'with AOF' : 'without persistence', settableClock && 'with a clock that is set']
      .filter(Boolean)
      .join(', ');
    const fitness = { seats: workers, nodes: 1, keepsData, settableClock };
    const history = new HistoryReader(historyPath);
    const topology = new SingleRedis(name, [node], scribe, fitness, register, history, seatOptions);
    await topology.seat(workers, library);
    return topology;
  }

  /** Puts these workers in the place of those that were there. */
  async seat(workers: number, library?: string): Promise<void> {
    await Promise.all(this.seats.map((seat) => seat[Symbol.asyncDispose]()));
    const names = Array.from({ length: workers }, () => `w${++this.seatCount}`);
    this.seats = await Promise.all(names.map((name) => Seat.start(name, { ...this.seatOptions, library })));
  }

  async heal(): Promise<void> {
    for (const { proxy, link } of this.seats) {
      link.setPace(undefined);
      await proxy.restore();
    }
    await Promise.all(this.seats.filter((seat) => !seat.isTaken).map((seat) => seat.fill()));
  }

  takeHistory(): HistoryEvent[] {
    this.nodes[0].settle();
    const events = [...this.registerHistory.read(), ...this.scribe.take()];
    for (const seat of this.seats) events.push(...seat.takeHistory());
    return events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.scribe.close();
    await Promise.all(this.seats.map((seat) => seat[Symbol.asyncDispose]()));
    await this.register[Symbol.asyncDispose]();
    await this.nodes[0][Symbol.asyncDispose]();
    this.registerHistory.close();
    await rm(this.seatOptions.folder, { recursive: true, force: true });
  }
}
