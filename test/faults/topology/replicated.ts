import type { RedisServer } from '../../support/servers/redis-server.js';
import type { ServerNode } from './server-node.js';

/** Masters and those that copy them, one of which takes over: what faults can do with them. */
export interface Replicated {
  /** How many masters there are: one behind Sentinel, in a cluster one for each part of the slots. */
  readonly groups: number;
  readonly sentinels?: readonly RedisServer[];
  /** To which group a lock belongs at the moment. */
  groupOf(finalKey: string): Promise<number>;
  /** Who is the master of a group, as most others say. */
  masterOf(group: number): Promise<ServerNode>;
  /** Makes a replica the master, as an operator does. It need not have all that the old one had. */
  promote(group: number, how: 'in order' | 'at once'): Promise<void>;
  /** The replicas of this server do not hear what it is asked, until all doors are opened. */
  keepCopiesOut(master: ServerNode): void;
  /** This server and the others do not reach each other, until all doors are opened. Clients reach all. */
  isolate(node: ServerNode): Promise<void>;
  openDoors(): Promise<void>;
  /** Resolves when another one is the master of the group; or after a while, when nobody is promoted. */
  takenOver(group: number, from: ServerNode): Promise<void>;
  /** Starts one that was killed. It copies the master that there is by then. */
  startAgain(node: ServerNode): Promise<void>;
  /** Starts a master that was killed, empty and still the master as far as it knows. */
  startEmpty(node: ServerNode): Promise<void>;
  /** Resolves when there is one master in each group, and its replicas have all that it has. */
  settled(): Promise<void>;
  /** Moves a slot from one master to another, with what is in it. In a cluster only. */
  moveSlot?(finalKey: string, meanwhile: MeanwhileMoving): Promise<void>;
}

/** What is waited for while a slot moves: before its keys do, and before all servers know of it. */
export interface MeanwhileMoving {
  begun(): Promise<unknown>;
  keysAreThere(): Promise<unknown>;
}
