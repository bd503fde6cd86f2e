import { CODE } from '../../../lib/stores/zookeeper/zk-failure.js';
import type { Agenda } from '../engine/agenda.js';
import type { EnsembleTerms, Entry, Leader, NodeTraits, SessionInfo, Written } from './leader.js';
import { SimServer } from './sim-server.js';
import { parentOf, SimTree, type Change } from './sim-tree.js';

const EPOCH = 2n ** 32n;
const FIRST_SESSION = 0x1000_0000_0000n;

/** The leader with its quorum, and the servers that follow it. */
export class SimEnsemble implements Leader {
  readonly servers: readonly SimServer[];
  readonly sessions = new Map<bigint, SessionInfo>();
  readonly log: Entry[] = [];
  readonly tree = new SimTree();
  /** While there is no leader, nothing is written, and no session expires. */
  hasLeader = true;
  refusesUntil = 0;
  private zxid = EPOCH;
  private nextSession = FIRST_SESSION;

  constructor(readonly terms: EnsembleTerms) {
    this.servers = Array.from({ length: terms.servers }, (_, i) => new SimServer(this, i));
    this.sweepLater();
  }

  get agenda(): Agenda {
    return this.terms.agenda;
  }

  begin(at: object): SessionInfo {
    const id = this.nextSession++;
    const session = {
      id,
      password: `secret ${id.toString(16)}`,
      timeoutMs: this.terms.sessionMs,
      expiresAt: 0,
      at,
    };
    this.sessions.set(id, session);
    this.heard(id);
    this.expireLater(session);
    return session;
  }

  /** A client takes up its session at a server. Returns undefined when there is no such session. */
  takeUp(id: bigint, password: string, at: object): SessionInfo | undefined {
    const session = this.sessions.get(id);
    if (session?.password !== password) return undefined;
    if (session.at !== at) this.terms.saw('a session moves to another server');
    session.at = at;
    this.heard(id);
    return session;
  }

  /** A server has heard from a session. */
  heard(id: bigint): void {
    const session = this.sessions.get(id);
    if (session) session.expiresAt = this.agenda.now + session.timeoutMs / this.terms.rate;
  }

  /** Returns why a request of a session is refused, if so. */
  faultOf(id: bigint, at: object): number | undefined {
    const session = this.sessions.get(id);
    if (!session) return CODE.sessionExpired;
    if (session.at === at) return undefined;
    this.terms.saw('a request comes over the server before');
    return CODE.sessionMoved;
  }

  create(path: string, { owner, isSequential, isContainer }: NodeTraits): Written {
    const number = this.tree.get(parentOf(path))?.creations ?? 0;
    const full = isSequential ? `${path}${String(number).padStart(10, '0')}` : path;
    const code = this.tree.faultOfCreate(full);
    if (code !== undefined) return this.refuse(code);
    return { zxid: this.append({ kind: 'create', path: full, owner, isContainer }), code: 0, path: full };
  }

  delete(path: string): Written {
    const code = this.tree.faultOfDelete(path);
    if (code !== undefined) return this.refuse(code);
    return { zxid: this.append({ kind: 'delete', path }), code: 0, path };
  }

  refuse(code: number): Written {
    return { zxid: this.append({ kind: 'nothing' }), code, path: '' };
  }

  close(id: bigint): bigint {
    this.sessions.delete(id);
    return this.append({ kind: 'close', session: id });
  }

  append(change: Change): bigint {
    this.zxid += 1n;
    this.tree.apply(this.zxid, change);
    this.log.push({ zxid: this.zxid, change });
    for (const server of this.servers) server.commit(this.log.length);
    return this.zxid;
  }

  /** The leader is gone, and so are all connections. The next one gives each session its whole time. */
  elect(downMs: number): void {
    if (!this.hasLeader) return;
    this.hasLeader = false;
    for (const server of this.servers) server.disconnectAll();
    this.agenda.quietly(this.agenda.now + downMs, () => {
      this.hasLeader = true;
      this.zxid = (this.zxid / EPOCH + 1n) * EPOCH;
      for (const { id } of this.sessions.values()) this.heard(id);
    });
  }

  /** Removes the empty containers, as the leader does each minute. */
  sweep(): void {
    if (!this.hasLeader) return;
    for (const path of this.tree.emptyContainers) {
      this.terms.saw('a container is removed');
      this.delete(path);
    }
  }

  private sweepLater(): void {
    this.agenda.quietly(this.agenda.now + this.terms.sweepMs, () => {
      this.sweep();
      this.sweepLater();
    });
  }

  private expireLater(session: SessionInfo): void {
    this.agenda.quietly(session.expiresAt, () => {
      if (this.sessions.get(session.id) !== session) return;
      if (!this.hasLeader) this.heard(session.id);
      if (session.expiresAt > this.agenda.now) return this.expireLater(session);
      const held = this.tree.owned(session.id).length;
      this.terms.saw(held > 0 ? 'a session expires with nodes' : 'a session expires');
      this.close(session.id);
    });
  }
}
