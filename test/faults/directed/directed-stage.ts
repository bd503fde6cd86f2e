import type { HistoryEvent } from '../../checker/history.js';
import type { Violation } from '../../checker/violation.js';
import { until } from '../../support/async.js';
import type { ProxyConnection } from '../../support/tcp-proxy.js';
import type { Course } from '../apps/apps.js';
import { duringOutage } from '../catalogue/outage.js';
import type { ScriptName } from '../catalogue/scripts.js';
import { withApps } from '../catalogue/with-apps.js';
import { labNow } from '../history/lab-clock.js';
import { instancesOf, settle } from '../round.js';
import { judge } from '../rules/judge.js';
import { AFTERMATH } from '../settings.js';
import type { Role, Seat } from '../topology/seat.js';
import type { Topology } from '../topology/topology.js';
import type { Task } from '../workload/task.js';
import type { ObjectTask, WorkerSettings } from '../workload/worker-messages.js';

/** What a schedule that is written by hand has at hand: two workers, a server, and what happens on the lines. */
export class DirectedStage {
  private readonly tasks: Promise<void>[] = [];

  constructor(
    readonly topology: Topology,
    /** Part of every key. */
    readonly name: string,
    private readonly settings: WorkerSettings,
  ) {
    topology.takeHistory();
    topology.begin(name);
    for (const seat of topology.seats) seat.begin(name);
  }

  get one(): Seat {
    return this.topology.seats[0]!;
  }

  get two(): Seat {
    return this.topology.seats[1]!;
  }

  get server() {
    return this.topology.nodes[0]!.server;
  }

  finalKey(key: string): string {
    return `${this.settings.keyPrefix}${this.name}:${key}`;
  }

  /** Starts a task. */
  start(seat: Seat, task: Task): void {
    this.tasks.push(seat.perform(task));
  }

  /** Starts a task with a semaphore or a latch. */
  startToUse(seat: Seat, task: ObjectTask): Promise<void> {
    const work = seat.use(task);
    this.tasks.push(work);
    return work;
  }

  /** Resolves when the task is over. */
  async perform(seat: Seat, task: Task): Promise<void> {
    await seat.perform(task);
  }

  /** The seat's only connection of this role. */
  connection(seat: Seat, role: Role): ProxyConnection {
    const [connection, more] = seat.connections(role);
    if (!connection || more) throw new Error(`${seat.name} has not exactly one connection for ${role}`);
    return connection;
  }

  /** Resolves when this script passes on its way to the server; `at` is called before it goes on. */
  requesting(
    seat: Seat,
    script: ScriptName,
    at: (connection: ProxyConnection) => void = () => {},
  ): Promise<void> {
    return new Promise((resolve) => {
      seat.atNext(script, (connection) => {
        at(connection);
        resolve();
      });
    });
  }

  /** Resolves when something with this text has passed on its way to the worker. */
  arriving(seat: Seat, role: Role, text: string): Promise<void> {
    const connection = this.connection(seat, role);
    return new Promise((resolve) => {
      const stop = seat.link.onData((from, direction, chunk) => {
        if (from !== connection || direction !== 'toClient' || !chunk.includes(text)) return;
        stop();
        resolve();
      });
    });
  }

  /** Resolves when nobody holds the key in the server. */
  async free(key: string): Promise<void> {
    await until(async () => (await this.server.cli('EXISTS', this.finalKey(key))) === 0, {
      what: `${key} is free`,
    });
  }

  /** Resolves when somebody is subscribed to the end of the hold. */
  async listenedTo(key: string): Promise<void> {
    const channels = ['redisson_lock__channel', 'redisson_rwlock', 'redisson_sc'].map(
      (name) => `${name}:{${this.finalKey(key)}}`,
    );
    await until(
      async () => {
        const counted = (await this.server.cli('PUBSUB', 'NUMSUB', ...channels)) as (string | number)[];
        return counted.some((count) => typeof count === 'number' && count > 0);
      },
      {
        what: `somebody listens for ${key}`,
      },
    );
  }

  /** From now on, for so long, this worker may be hampered by what is done to its line. */
  hampered(seat: Seat, forMs: number): void {
    this.topology.scribe.trouble('done by hand', labNow(), labNow() + forMs, seat.life.name);
  }

  /** Inflicts a failover of the first group while apps are there. Workers may be hampered by it. */
  failover(what: string, work: (course: Course) => Promise<void>): Promise<void> {
    const { topology } = this;
    return withApps(topology, what, 0, (course) =>
      duringOutage(topology, what, AFTERMATH.outage, () => work(course)),
    );
  }

  /** Resolves when all tasks are over. */
  async done(): Promise<void> {
    await Promise.all(this.tasks);
  }

  /** Ends it, and judges what has happened. */
  async verdict(): Promise<{ events: HistoryEvent[]; violations: Violation[] }> {
    await this.done();
    await this.topology.heal();
    await settle(this.topology, this.name);
    const events = this.topology.takeHistory();
    const { watchdogMs } = this.settings;
    const { shape } = this.topology.fitness;
    const instances = instancesOf(this.topology);
    return {
      events,
      violations: judge(events, { shape, instances, watchdogMs, isQuiet: shape === 'cluster' }),
    };
  }
}
