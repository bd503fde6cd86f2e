import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HistoryEvent } from '../../checker/history.js';
import { guardFolder } from '../../support/process-guard.js';
import { SCRATCH } from '../../support/scratch.js';
import { TestWorker } from '../../support/worker.js';
import { Apps, type AppServers } from '../apps/apps.js';
import { HistoryReader } from '../history/history-file.js';
import { clockEnvironment } from '../history/lab-clock.js';
import { Scribe } from '../history/scribe.js';
import type { FromRegister, ToRegister } from '../register/register.process.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { Seat, type SeatOptions } from './seat.js';

const REGISTER = new URL('../register/register.process.ts', import.meta.url);

type RegisterProcess = TestWorker<ToRegister, FromRegister>;

/** Where workers and apps are to find the servers. */
export interface Seating extends Pick<SeatOptions, 'servers' | 'redis' | 'requests' | 'subscribes'> {
  readonly apps?: AppServers;
}

/** What every topology has beside its servers: seats for workers, the register, and where histories are written. */
export class Grounds implements AsyncDisposable {
  readonly scribe = new Scribe();
  seats: readonly Seat[] = [];
  /** Where one server takes over from another, or a majority counts. */
  apps: Apps | undefined;
  private seatCount = 0;

  private constructor(
    private readonly folder: string,
    private readonly register: RegisterProcess,
    private readonly registerPort: number,
    private readonly registerHistory: HistoryReader,
    private readonly settings: WorkerSettings,
  ) {}

  static async open(settings: WorkerSettings): Promise<Grounds> {
    const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-faults-'));
    guardFolder(folder);
    const historyPath = join(folder, 'register.jsonl');
    const register: RegisterProcess = TestWorker.start(REGISTER, {
      args: [historyPath],
      env: clockEnvironment,
    });
    const { port } = await register.next('listening');
    return new Grounds(folder, register, port, new HistoryReader(historyPath), settings);
  }

  /** Puts these workers in the place of those that were there. */
  async seat(workers: number, { apps, ...seating }: Seating, library?: string): Promise<void> {
    await Promise.all(this.seats.map((seat) => seat[Symbol.asyncDispose]()));
    await this.apps?.[Symbol.asyncDispose]();
    const { folder, registerPort, settings, scribe } = this;
    const { servers, redis } = seating;
    if (apps) {
      const direct = { ...apps, redis: redis(servers.map(({ port }) => port)) };
      const history = join(folder, `apps-${this.seatCount}.jsonl`);
      this.apps = new Apps({ servers: direct, history, library, settings, scribe });
    }
    const options: SeatOptions = { ...seating, folder, registerPort, settings, library };
    const names = Array.from({ length: workers }, () => `w${++this.seatCount}`);
    this.seats = await Promise.all(names.map((name) => Seat.start(name, options)));
  }

  /** Ends what is wrong with lines. */
  async mendLinks(): Promise<void> {
    for (const { link } of this.seats) {
      link.setPace(undefined);
      await link.restore();
    }
  }

  /** Puts a worker on each seat that is empty. */
  async fillSeats(): Promise<void> {
    await Promise.all(this.seats.filter((seat) => !seat.isTaken).map((seat) => seat.fill()));
  }

  takeHistory(): HistoryEvent[] {
    const events = [...this.registerHistory.read(), ...this.scribe.take()];
    for (const seat of this.seats) events.push(...seat.takeHistory());
    if (this.apps) events.push(...this.apps.takeHistory());
    return events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.scribe.close();
    await Promise.all(this.seats.map((seat) => seat[Symbol.asyncDispose]()));
    await this.apps?.[Symbol.asyncDispose]();
    await this.register[Symbol.asyncDispose]();
    this.registerHistory.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
