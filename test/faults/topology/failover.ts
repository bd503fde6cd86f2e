import { setTimeout as sleep } from 'node:timers/promises';
import type { HistoryEvent } from '../../checker/history.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { AppServers } from '../apps/apps.js';
import { labNow } from '../history/lab-clock.js';
import type { ReplicasWanted, WorkerRedis, WorkerSettings } from '../workload/worker-messages.js';
import { passOverWhoCameBack } from './brought-back.js';
import type { Grounds } from './grounds.js';
import type { Target } from './proxy-link.js';
import type { Replicated } from './replicated.js';
import type { RoleWatch } from './role-watch.js';
import type { ServerDoor } from './server-door.js';
import type { ServerNode } from './server-node.js';
import type { Fitness, Topology } from './topology.js';

/** How long a place in line stands that nobody keeps, and a lease that a replica has not seen renewed. */
const OLD_STATE_LIVES_MS = 6_000;

/** What a topology of masters and replicas is made of. */
export interface FailoverParts {
  readonly name: string;
  readonly nodes: readonly ServerNode[];
  readonly doors: readonly ServerDoor[];
  readonly roles: RoleWatch;
  readonly fitness: Fitness;
  readonly grounds: Grounds;
  /** Where workers' lines lead: to the nodes first, and to sentinels. */
  readonly servers: readonly Target[];
  /** Where Redis is for a worker whose lines begin at these ports. */
  readonly redis: (ports: readonly number[]) => WorkerRedis;
  readonly replicated: Replicated;
  readonly apps: AppServers;
  /** Ends the servers. */
  readonly stop: () => Promise<void>;
}

/** Servers of which some take over from others, which may not have heard of all that those had given. */
export class Failover implements Topology {
  readonly name: string;
  readonly nodes: readonly ServerNode[];
  readonly fitness: Fitness;
  readonly replicated: Replicated;
  /** The round that goes on: its name is part of every key. */
  round = '';
  private beganAt = 0;

  constructor(private readonly parts: FailoverParts) {
    this.name = parts.name;
    this.nodes = parts.nodes;
    this.fitness = parts.fitness;
    this.replicated = parts.replicated;
  }

  get seats() {
    return this.parts.grounds.seats;
  }

  get apps() {
    return this.parts.grounds.apps;
  }

  get scribe() {
    return this.parts.grounds.scribe;
  }

  seat(workers: number, library?: string): Promise<void> {
    const { servers, redis, apps, grounds } = this.parts;
    return grounds.seat(workers, { servers, redis, apps }, library);
  }

  begin(round: string): void {
    this.beganAt = labNow();
    this.round = round;
  }

  async heal(): Promise<void> {
    await this.parts.grounds.mendLinks();
    await this.replicated.openDoors();
    for (const node of this.nodes) if (!node.server.isRunning) await this.replicated.startAgain(node);
    await this.replicated.settled();
    await this.parts.grounds.fillSeats();
  }

  /** The masters, once what a promotion brought back of the past has ended: the last who waited have kept it till now. */
  async keepers(): Promise<readonly RedisServer[]> {
    const wasPromotion = this.parts.roles.lastChangeAt > this.beganAt;
    if (wasPromotion) await sleep(OLD_STATE_LIVES_MS);
    const { groups } = this.replicated;
    const masters = Array.from({ length: groups }, (_, group) => this.replicated.masterOf(group));
    const servers = (await Promise.all(masters)).map(({ server }) => server);
    if (wasPromotion) await passOverWhoCameBack(servers, this.seats);
    return servers;
  }

  takeHistory(): HistoryEvent[] {
    return this.parts.grounds.takeHistory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { grounds, roles, doors, stop } = this.parts;
    await grounds[Symbol.asyncDispose]();
    await roles[Symbol.asyncDispose]();
    await stop();
    for (const door of doors) await door[Symbol.asyncDispose]();
  }
}

export interface FailoverOptions {
  readonly name: string;
  readonly workers: number;
  /** Holds count only once so many replicas have them. */
  readonly replicas?: ReplicasWanted | undefined;
  readonly library?: string;
  /** In a cluster, after how long without an answer a server counts as failed. Default: soon. */
  readonly nodeTimeoutMs?: number;
  /** What the workers' apps are set to. */
  readonly settings?: WorkerSettings;
}
