import type { Socket } from 'node:net';
import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { MessageName } from './protocol.js';
import type { SimEnsemble } from './sim-ensemble.js';
import type { SimServer } from './sim-server.js';
import { SimSocket, type SocketLink } from './sim-socket.js';

/** Which message gets lost, and what becomes of its connection. */
export interface Loss {
  readonly of: MessageName;
  /** Whether both ends notice that the connection is lost. Otherwise it stays half-open. */
  readonly isNoticed: boolean;
}

interface LinkTerms {
  readonly process: SimProcess;
  readonly ensemble: SimEnsemble;
  readonly agenda: Agenda;
  readonly random: Random;
  readonly latencyMs: readonly [number, number];
  saw(what: string): void;
}

/** All connections of a process to the ensemble. */
export class ZkLink implements SocketLink {
  readonly sockets = new Set<SimSocket>();
  readonly process: SimProcess;
  readonly agenda: Agenda;
  /** Called once, when a server replies to a sync. */
  onBeat: ((server: SimServer) => void) | undefined;
  private silentUntil = 0;
  private slowUntil = 0;
  private extraMs = 0;
  private lostRequest: Loss | undefined;
  private lostReply: Loss | undefined;
  private losing: Loss | undefined;

  constructor(private readonly terms: LinkTerms) {
    ({ process: this.process, agenda: this.agenda } = terms);
  }

  /** How the store connects to each server. */
  get dialers(): readonly (() => Socket)[] {
    return this.terms.ensemble.servers.map((server) => () => this.dial(server));
  }

  /** Nothing gets through until then, also on new connections; what was on its way comes after that. */
  silence(until: number): void {
    this.silentUntil = Math.max(this.silentUntil, until);
  }

  slow(extraMs: number, until: number): void {
    this.extraMs = extraMs;
    this.slowUntil = until;
  }

  loseRequest(loss: Loss): void {
    this.lostRequest = loss;
  }

  loseReply(loss: Loss): void {
    this.lostReply = loss;
  }

  /** The connections break. */
  cut(lateMs: number | undefined): void {
    for (const socket of this.sockets) socket.break(lateMs);
  }

  /** The open connections are half-open from now on. */
  mute(): void {
    for (const socket of this.sockets) socket.mute();
  }

  /** The process has crashed: its machine closes the connections. */
  crashed(): void {
    for (const socket of this.sockets) socket.crashed();
    this.sockets.clear();
  }

  /** No more faults: both ends notice at last which connections are dead. */
  heal(): void {
    for (const socket of this.sockets) socket.heal();
    this.lostRequest = this.lostReply = this.losing = this.onBeat = undefined;
  }

  losesRequest(name: MessageName): boolean {
    if (this.lostRequest?.of !== name) return false;
    this.losing = this.lostRequest;
    this.lostRequest = undefined;
    this.saw(`lost request: ${name}`);
    return true;
  }

  losesReply(name: MessageName): boolean {
    if (this.lostReply?.of !== name) return false;
    this.losing = this.lostReply;
    this.lostReply = undefined;
    this.saw(`lost reply: ${name}`);
    return true;
  }

  /** A message of this connection got lost. */
  lose(socket: SimSocket): void {
    if (this.losing?.isNoticed) socket.break(undefined);
    else socket.mute();
  }

  beats(server: SimServer): void {
    const { onBeat } = this;
    if (!onBeat) return;
    this.onBeat = undefined;
    onBeat(server);
  }

  forget(socket: SimSocket): void {
    this.sockets.delete(socket);
  }

  saw(what: string): void {
    this.terms.saw(what);
  }

  /** Some messages arrive in two pieces. */
  chunksOf(bytes: Buffer): readonly Buffer[] {
    const { random } = this.terms;
    if (!random.chance(0.05)) return [bytes];
    const at = random.whole(1, bytes.length - 1);
    return [bytes.subarray(0, at), bytes.subarray(at)];
  }

  /** When something that is sent now arrives. */
  arrivesAt(): number {
    const { random, latencyMs } = this.terms;
    const { now } = this.agenda;
    const slow = now < this.slowUntil ? this.extraMs * random.between(0.5, 1) : 0;
    return Math.max(now, this.silentUntil) + random.between(...latencyMs) + slow;
  }

  private dial(server: SimServer): Socket {
    const socket = new SimSocket(this, server);
    this.sockets.add(socket);
    // The client uses nothing else of a socket than the simulated one has.
    return socket as unknown as Socket;
  }
}
