import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { labNow } from '../history/lab-clock.js';
import type { ReplicasWanted, WorkerSettings } from '../workload/worker-messages.js';
import { passOverWhoCameBack } from './brought-back.js';
import type { Grounds, Seating } from './grounds.js';
import type { Replicated } from './replicated.js';
import type { RoleWatch } from './role-watch.js';
import type { ServerDoor } from './server-door.js';
import type { ServerNode } from './server-node.js';
import { TopologyOnGrounds } from './topology-on-grounds.js';

/** How long a place in line stands that nobody keeps, and a lease that a replica has not seen renewed. */
const OLD_STATE_LIVES_MS = 6_000;

/** What a topology of masters and replicas is made of. */
export interface FailoverParts {
  readonly name: string;
  readonly nodes: readonly ServerNode[];
  readonly doors: readonly ServerDoor[];
  readonly roles: RoleWatch;
  readonly shape: 'sentinel' | 'cluster';
  readonly workers: number;
  readonly grounds: Grounds;
  readonly seating: Seating;
  readonly replicated: Replicated;
  /** Ends the servers. */
  readonly stop: () => Promise<void>;
}

/** Servers of which some take over from others, which may not have heard of all that those had given. */
export class Failover extends TopologyOnGrounds {
  override readonly nodes: readonly ServerNode[];
  readonly replicated: Replicated;
  protected readonly seating: Seating;
  private beganAt = 0;

  constructor(private readonly parts: FailoverParts) {
    const { name, shape, workers, nodes, seating, grounds } = parts;
    const [all, links] = [nodes.length, seating.servers.length];
    const counts = { seats: workers, nodes: all, sound: all, links };
    super(name, { shape, ...counts, keepsData: false, settableClock: true }, grounds);
    this.nodes = nodes;
    this.replicated = parts.replicated;
    this.seating = seating;
  }

  override begin(round: string): void {
    super.begin(round);
    this.beganAt = labNow();
  }

  protected override async served(): Promise<void> {
    await this.replicated.openDoors();
    for (const node of this.nodes) if (!node.server.isRunning) await this.replicated.startAgain(node);
    await this.replicated.settled();
  }

  /** The masters, once what a promotion brought back of the past has ended: the last who waited have kept it till now. */
  override async keepers(): Promise<readonly RedisServer[]> {
    const wasPromotion = this.parts.roles.lastChangeAt > this.beganAt;
    if (wasPromotion) await sleep(OLD_STATE_LIVES_MS);
    const { groups } = this.replicated;
    const masters = Array.from({ length: groups }, (_, group) => this.replicated.masterOf(group));
    const servers = (await Promise.all(masters)).map(({ server }) => server);
    if (wasPromotion) await passOverWhoCameBack(servers, this.seats);
    return servers;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    const { roles, doors, stop } = this.parts;
    await super[Symbol.asyncDispose]();
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
