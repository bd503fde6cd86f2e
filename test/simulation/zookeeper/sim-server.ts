import type { Leader, ServerEnd } from './leader.js';
import { eventOf } from './protocol.js';
import { SimTree } from './sim-tree.js';

type Watched = 'data' | 'children';
const DELETED = 2;
const CHILDREN_CHANGED = 4;

/** One server. What it shows is the past: it applies the changes of the leader in order, but later. */
export class SimServer {
  tree = new SimTree();
  readonly connections = new Set<ServerEnd>();
  isUp = true;
  pausedUntil = 0;
  lagsUntil = 0;
  /** Extra time in ms until a change is here, while it lags. */
  lagMs = 0;
  /** Number of changes that it has applied. */
  private applied = 0;
  /** How many requests it has worked at. */
  requests = 0;
  private lastChange = 0n;
  private lastCommitAt = 0;
  private lastUpAt = 0;
  private busyUntil = 0;
  /** Sessions from which it has heard, and not told the leader yet. */
  private readonly unreported = new Set<bigint>();
  private readonly afterChange = new Map<number, (() => void)[]>();
  private readonly watches: Readonly<Record<Watched, Map<string, Set<ServerEnd>>>> = {
    data: new Map(),
    children: new Map(),
  };

  constructor(
    readonly ensemble: Leader,
    readonly index: number,
  ) {
    this.reportLater();
  }

  /** Number of the last change that it has applied. */
  get lastSeen(): bigint {
    return this.lastChange;
  }

  get accepts(): boolean {
    const { ensemble } = this;
    return this.isUp && ensemble.hasLeader && ensemble.agenda.now >= ensemble.refusesUntil;
  }

  /** Does something when the server runs: at once, unless it stands still. */
  run(action: () => void): void {
    const { agenda } = this.ensemble;
    if (agenda.now >= this.pausedUntil) return action();
    agenda.quietly(this.pausedUntil, () => this.run(action));
  }

  /** Works at a request, after those before it. */
  serve(request: () => void): void {
    const { agenda, terms } = this.ensemble;
    this.requests += 1;
    if (terms.serviceMs === undefined) return request();
    this.busyUntil = Math.max(this.busyUntil, agenda.now) + terms.serviceMs;
    agenda.quietly(this.busyUntil, () => this.run(request));
  }

  /** Sends something to the leader, in order. It is lost when there is none. */
  toLeader(action: () => void): void {
    const { agenda, terms } = this.ensemble;
    if (terms.servers === 1) return this.ensemble.hasLeader ? action() : undefined;
    this.lastUpAt = Math.max(this.lastUpAt, agenda.now + terms.random.between(0.1, 1));
    agenda.quietly(this.lastUpAt, () => {
      if (this.ensemble.hasLeader) action();
    });
  }

  /** The leader has decided on all changes up to this one. */
  commit(count: number): void {
    const { agenda, terms } = this.ensemble;
    const lagMs = agenda.now < this.lagsUntil ? this.lagMs : 0;
    const delayMs = terms.servers === 1 ? 0 : terms.random.between(0.1, 1) + lagMs;
    this.lastCommitAt = Math.max(this.lastCommitAt, agenda.now + delayMs);
    // Also when it is due at once: the one that asks first says what follows.
    agenda.quietly(this.lastCommitAt, () => this.run(() => this.catchUp(count)));
  }

  /** Calls `action` when all that the leader has decided until now is applied here. */
  afterAll(action: () => void): void {
    const { length } = this.ensemble.log;
    if (this.applied >= length) return this.run(action);
    const others = this.afterChange.get(length) ?? [];
    this.afterChange.set(length, [...others, action]);
  }

  heard(session: bigint): void {
    this.unreported.add(session);
    // The leader's own clients are known to it.
    if (this.index === 0) return this.report();
    const { agenda, terms, sessions } = this.ensemble;
    const known = sessions.get(session);
    const leftMs = (known?.expiresAt ?? Infinity) - agenda.now;
    if (!terms.tellsLate && leftMs < terms.sessionMs / 3) this.ensemble.heard(session);
  }

  watch(watched: Watched, path: string, connection: ServerEnd): void {
    const ofPath = this.watches[watched].get(path) ?? new Set();
    this.watches[watched].set(path, ofPath.add(connection));
  }

  forget(connection: ServerEnd): void {
    this.connections.delete(connection);
    for (const watches of Object.values(this.watches))
      for (const connections of watches.values()) connections.delete(connection);
  }

  /** Ends the connection that a session had here before. */
  endBefore(session: bigint, next: ServerEnd): void {
    for (const one of this.connections) if (one.session === session && one !== next) one.end();
  }

  disconnectAll(): void {
    for (const one of this.connections) one.end();
  }

  /** It stops at once: what it has not told the leader is lost. */
  die(): void {
    this.isUp = false;
    if (this.unreported.size > 0) this.ensemble.terms.saw('a server dies before it tells of a session');
    this.unreported.clear();
    this.afterChange.clear();
    this.disconnectAll();
  }

  private catchUp(count: number): void {
    const { log } = this.ensemble;
    while (this.applied < count) {
      const { zxid, change } = log[this.applied]!;
      this.applied += 1;
      this.lastChange = zxid;
      for (const { type, path } of this.tree.apply(zxid, change)) this.tell(type, path);
      for (const action of this.afterChange.get(this.applied) ?? []) action();
      this.afterChange.delete(this.applied);
      if (change.kind === 'close')
        for (const one of this.connections) if (one.session === change.session) one.end();
    }
  }

  private tell(type: number, path: string): void {
    const told = new Set<ServerEnd>();
    if (type !== CHILDREN_CHANGED) this.take('data', path, told);
    if (type === CHILDREN_CHANGED || type === DELETED) this.take('children', path, told);
    for (const one of told) one.send(eventOf(type, path));
  }

  private take(watched: Watched, path: string, told: Set<ServerEnd>): void {
    for (const one of this.watches[watched].get(path) ?? []) told.add(one);
    this.watches[watched].delete(path);
  }

  private report(): void {
    if (!this.ensemble.hasLeader) return;
    for (const session of this.unreported) this.ensemble.heard(session);
    this.unreported.clear();
  }

  private reportLater(): void {
    const { agenda, terms } = this.ensemble;
    agenda.quietly(agenda.now + terms.reportMs, () => {
      if (this.isUp) this.run(() => this.toLeader(() => this.report()));
      this.reportLater();
    });
  }
}
