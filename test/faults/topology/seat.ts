import type { EventOf, HistoryEvent } from '../../checker/history.js';
import { until } from '../../support/async.js';
import type { ProxyConnection } from '../../support/tcp-proxy.js';
import { TestWorker } from '../../support/worker.js';
import { HistoryReader } from '../history/history-file.js';
import { clockEnvironment, labNow } from '../history/lab-clock.js';
import type { Task } from '../workload/task.js';
import type {
  FromWorker,
  Load,
  ObjectTask,
  ToWorker,
  WorkerServers,
  WorkerSettings,
  WorkerSetup,
} from '../workload/worker-messages.js';
import { connectionName } from '../workload/worker/named-clients.js';
import { ProxyLink, ProxyLinks, type Target } from './proxy-link.js';
import { SCRIPT_REQUESTS, type RequestName, type Requests } from './requests.js';

export type Role = 'commands' | 'subscriber';

/** What all workers of a topology have in common. */
export interface SeatOptions {
  /** The servers that workers talk to: a line leads to each of them. */
  readonly servers: readonly Target[];
  /** Where Redis is for a worker whose lines to these servers begin at these ports. */
  readonly redis: (ports: readonly number[]) => WorkerServers;
  /** How requests are recognized on their way to a server; those of Redis by default. */
  readonly requests?: Requests;
  /** What only a connection for notifications has sent; the command of Redis by default. Null: one connection is for all. */
  readonly subscribes?: string | null;
  readonly registerPort: number;
  /** Where workers write their histories. */
  readonly folder: string;
  readonly library?: string;
  readonly settings: WorkerSettings;
}

const WORKER = new URL('../workload/worker/worker.process.ts', import.meta.url);
/** What every message that grants a turn begins with. */
const GRANT = 'grant 1 ';
const IDLE_TIMEOUT_MS = 60_000;
/** A worker compiles the whole library first, while others start beside it. */
const STARTED_MS = 60_000;

/** One life of a worker process. */
export interface Life {
  /** Its name in the history; each life has its own. */
  readonly name: string;
  /** What the owners of its holds begin with. */
  readonly instance: string;
  readonly process: TestWorker<ToWorker, FromWorker>;
  readonly history: HistoryReader;
}

interface Awaited {
  readonly request: RequestName;
  readonly action: (connection: ProxyConnection) => void;
}

/** A place for a worker, with a line of its own to each server. Workers come and go; the lines stay. */
export class Seat implements AsyncDisposable {
  private current: Life | undefined;
  private lives = 0;
  private tasks = 0;
  private round: { round: string; load?: Load } | undefined;
  private readonly past: Life[] = [];
  private readonly ends: EventOf<'gone'>[] = [];
  private readonly awaited = new Set<Awaited>();

  /** All of its lines at once. */
  readonly link: ProxyLinks;

  private constructor(
    readonly name: string,
    private readonly options: SeatOptions,
    private readonly links: readonly ProxyLink[],
  ) {
    this.link = new ProxyLinks(links);
    this.link.onData((connection, direction, chunk) => {
      if (direction === 'toServer') this.sent(connection, chunk);
    });
  }

  static async start(name: string, options: SeatOptions): Promise<Seat> {
    const links = await Promise.all(options.servers.map((server) => ProxyLink.start(server)));
    const seat = new Seat(name, options, links);
    await seat.fill();
    return seat;
  }

  /** Its lines to some of the servers, by their numbers. */
  linksTo(servers: readonly number[]): ProxyLinks {
    return new ProxyLinks(servers.map((server) => this.links[server]!));
  }

  get life(): Life {
    if (!this.current) throw new Error(`nobody sits on ${this.name}`);
    return this.current;
  }

  get isTaken(): boolean {
    return this.current !== undefined;
  }

  /** Every life so far. */
  get allLives(): readonly Life[] {
    return this.past;
  }

  /**
   * Calls `action` in the moment in which the next request of this name passes on its way to the server, in
   * time to do something about this very request. Once; the returned function calls it off.
   */
  atNext(request: RequestName, action: (connection: ProxyConnection) => void): () => void {
    const awaited = { request, action };
    this.awaited.add(awaited);
    return () => this.awaited.delete(awaited);
  }

  private sent(connection: ProxyConnection, chunk: Buffer): void {
    const { requests = SCRIPT_REQUESTS } = this.options;
    const text = requests.textOf(connection, chunk);
    for (const awaited of this.awaited) {
      if (!requests.parts[awaited.request]?.some((part) => text.includes(part))) continue;
      this.awaited.delete(awaited);
      awaited.action(connection);
    }
  }

  /**
   * The same in the moment in which the worker is about to be told that it is its turn, in time to do something about
   * that message.
   */
  atNextGrant(action: (connection: ProxyConnection) => void): () => void {
    const stop = this.link.onData((connection, direction, chunk) => {
      if (direction !== 'toClient' || !chunk.includes(GRANT)) return;
      stop();
      action(connection);
    });
    return stop;
  }

  /** The connections of one role that are open at the moment. */
  connections(role: Role): readonly ProxyConnection[] {
    const { name } = this.life;
    const { subscribes = 'subscribe' } = this.options;
    if (subscribes === null) return this.link.connections;
    const named = this.link.find(connectionName(name, role));
    if (named.length > 0) return named;
    // In a cluster and in a database all connections of a process are called the same.
    return this.link
      .find(name)
      .filter((connection) => connection.carried(subscribes) === (role === 'subscriber'));
  }

  /** A worker begins, and takes part in the round. */
  async fill(): Promise<void> {
    const name = `${this.name}.${++this.lives}`;
    const history = `${this.options.folder}/${name}.jsonl`;
    const { registerPort, settings, library } = this.options;
    const setup: WorkerSetup = {
      process: name,
      history,
      redis: this.options.redis(this.links.map(({ port }) => port)),
      registerPort,
      settings,
      ...(library !== undefined && { library }),
    };
    const process = TestWorker.start<ToWorker, FromWorker>(WORKER, {
      args: [JSON.stringify(setup)],
      env: clockEnvironment,
    });
    const { instance } = await process.next('ready', { timeoutMs: STARTED_MS });
    this.current = { name, instance, process, history: new HistoryReader(history) };
    this.past.push(this.current);
    if (this.round) process.send({ type: 'begin', ...this.round });
  }

  begin(round: string, load?: Load): void {
    this.round = { round, ...(load && { load }) };
    this.life.process.send({ type: 'begin', ...this.round });
  }

  /** Resolves when the task is over. */
  perform(task: Task): Promise<void> {
    return this.finish((id) => ({ type: 'perform', id, task }));
  }

  /** The same of a task with a semaphore or a latch. */
  use(task: ObjectTask): Promise<void> {
    return this.finish((id) => ({ type: 'use', id, task }));
  }

  private async finish(message: (id: number) => ToWorker): Promise<void> {
    const { process } = this.life;
    const id = ++this.tasks;
    process.send(message(id));
    const isOver = () => !process.isRunning || process.all('performed').some((message) => message.id === id);
    await until(isOver, { timeoutMs: 60_000, what: `${this.name} has performed a task` });
  }

  /** Lets a task go on that waits for this. */
  go(what: string): void {
    this.life.process.send({ type: 'go', what: this.nameOf(what) });
  }

  /** Resolves when a task has told this. */
  async notified(what: string): Promise<void> {
    const { process } = this.life;
    const wanted = this.nameOf(what);
    const isNotified = () => process.all('notified').some((message) => message.what === wanted);
    await until(isNotified, { what: `${this.name} tells "${what}"` });
  }

  /** No more tasks. Resolves when all are over. */
  async stop(): Promise<void> {
    this.round = undefined;
    this.life.process.send({ type: 'stop' });
    await this.life.process.next('idle', { timeoutMs: IDLE_TIMEOUT_MS });
  }

  /** Kills the worker. The seat is empty then. */
  async kill(): Promise<void> {
    const { process, name } = this.life;
    this.current = undefined;
    const gone = process.kill('SIGKILL');
    this.ends.push({ type: 'gone', at: labNow(), process: name, how: 'crashed' });
    await gone;
  }

  /** What its workers wrote down since the last time, and how they ended. */
  takeHistory(): HistoryEvent[] {
    const lastAt = new Map<string, number>();
    const events = this.past.flatMap(({ name, history }) => {
      const written = history.read();
      const last = written.reduce((latest, { at }) => Math.max(latest, at), -Infinity);
      lastAt.set(name, last);
      return written;
    });
    const ends = this.ends.splice(0).flatMap((gone): HistoryEvent[] => {
      const { process } = gone;
      const last = lastAt.get(process) ?? -Infinity;
      if (last === -Infinity) return [gone];
      // It goes on for an instant after the signal was sent. If it was silent before, it may not have run at all: who
      // stands still finds that out afterwards.
      const at = Math.max(gone.at, last);
      return [
        { type: 'frozen', at: last, until: at, process },
        { ...gone, at },
      ];
    });
    return [...events, ...ends];
  }

  private nameOf(what: string): string {
    return `${this.round?.round}:${what}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.current) await this.current.process[Symbol.asyncDispose]();
    for (const { history } of this.past) history.close();
    for (const link of this.links) await link[Symbol.asyncDispose]();
  }
}
