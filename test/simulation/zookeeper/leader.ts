import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import type { Change } from './sim-tree.js';

/** A change with its number. */
export interface Entry {
  readonly zxid: bigint;
  readonly change: Change;
}

/** A session, as the leader knows it. */
export interface SessionInfo {
  readonly id: bigint;
  readonly password: string;
  readonly timeoutMs: number;
  expiresAt: number;
  /** The server to which its client is connected. Requests over any other one are refused. */
  at: object;
}

export interface EnsembleTerms {
  readonly agenda: Agenda;
  readonly random: Random;
  readonly servers: number;
  /** How fast the clocks of the servers run. */
  readonly rate: number;
  /** How often servers tell the leader which sessions they have heard from. */
  readonly reportMs: number;
  readonly sessionMs: number;
  /** How often empty containers are removed. */
  readonly sweepMs: number;
  /**
   * Whether servers tell the leader in their own time also of a session that was silent for two thirds of its time-out. The
   * leader may end it before, although its client has had replies.
   */
  readonly tellsLate: boolean;
  /** How long a server works at a request, in ms. Default: no time. */
  readonly serviceMs?: number;
  saw(what: string): void;
}

/** Outcome of a write: its number, and either its path or the code with which it was refused. */
export interface Written {
  readonly zxid: bigint;
  readonly code: number;
  readonly path: string;
}

/** The leader, as its servers see it. */
export interface Leader {
  readonly terms: EnsembleTerms;
  readonly agenda: Agenda;
  readonly sessions: ReadonlyMap<bigint, SessionInfo>;
  readonly log: readonly Entry[];
  readonly hasLeader: boolean;
  readonly refusesUntil: number;
  begin(at: object): SessionInfo;
  takeUp(id: bigint, password: string, at: object): SessionInfo | undefined;
  heard(id: bigint): void;
  faultOf(id: bigint, at: object): number | undefined;
  create(path: string, how: NodeTraits): Written;
  delete(path: string): Written;
  refuse(code: number): Written;
  close(id: bigint): bigint;
  append(change: Change): bigint;
}

/** The server's end of a connection. */
export interface ServerEnd {
  readonly session: bigint | undefined;
  send(bytes: Buffer): void;
  end(): void;
}

/** What a node is to be. */
export interface NodeTraits {
  readonly owner: bigint;
  readonly isSequential: boolean;
  readonly isContainer: boolean;
}
