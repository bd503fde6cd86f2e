import { Frames } from '../../../lib/stores/zookeeper/frames.js';
import { CODE } from '../../../lib/stores/zookeeper/zk-failure.js';
import {
  eventOf,
  readHello,
  readRequest,
  reply,
  welcome,
  writeStat,
  type Hello,
  type Request,
} from './protocol.js';
import type { SimServer } from './sim-server.js';
import type { ServerEnd, Written } from './leader.js';

/** The other end of a connection. */
export interface ClientEnd {
  /** The server has sent bytes; the first ones are the reply to the hello. */
  receive(bytes: Buffer): void;
  /** The server has closed the connection. */
  closed(): void;
}

/** A request in its turn: reads have it when all before is done. */
interface Turn {
  readonly request: Request;
  reply: Buffer | undefined;
  readonly read: (() => Buffer) | undefined;
}

const SEQUENTIAL = 2;
const EPHEMERAL = 1;
const DELETED = 2;
const CHANGED = 3;
const CHILDREN_CHANGED = 4;

/** The server's end of a connection. */
export class ServerConnection implements ServerEnd {
  session: bigint | undefined;
  private readonly frames = new Frames();
  private readonly turns: Turn[] = [];
  private isGreeted = false;
  private isOver = false;

  constructor(
    private readonly server: SimServer,
    private readonly client: ClientEnd,
  ) {
    server.connections.add(this);
  }

  receive(bytes: Buffer): void {
    this.server.run(() => {
      if (this.isOver || !this.server.isUp) return;
      for (const frame of this.frames.add(bytes)) {
        if (!this.isGreeted) this.greet(readHello(frame));
        else if (this.session !== undefined) this.server.serve(() => this.take(readRequest(frame)));
      }
    });
  }

  send(bytes: Buffer): void {
    if (!this.isOver) this.client.receive(bytes);
  }

  /** The client has gone. What it has asked for before is done all the same. */
  gone(): void {
    this.isOver = true;
    this.server.forget(this);
  }

  end(): void {
    if (this.isOver) return;
    this.gone();
    this.client.closed();
  }

  private greet({ lastSeen, session, password }: Hello): void {
    const { server } = this;
    const { ensemble } = server;
    this.isGreeted = true;
    if (lastSeen > server.lastSeen) {
      ensemble.terms.saw('a server lags behind a client');
      return this.end();
    }
    if (session !== 0n) server.endBefore(session, this);
    server.toLeader(() => {
      if (session !== 0n) {
        const known = ensemble.takeUp(session, password, server);
        return server.run(() => this.welcome(known && { timeoutMs: known.timeoutMs, session, password }));
      }
      const begun = ensemble.begin(server);
      ensemble.append({ kind: 'nothing' });
      server.afterAll(() =>
        this.welcome({ timeoutMs: begun.timeoutMs, session: begun.id, password: begun.password }),
      );
    });
  }

  private welcome(known: { timeoutMs: number; session: bigint; password: string } | undefined): void {
    if (!known) {
      this.send(welcome(0, 0n, '\0'.repeat(16)));
      return this.end();
    }
    this.session = known.session;
    this.send(welcome(known.timeoutMs, known.session, known.password));
  }

  private take(request: Request): void {
    const { server } = this;
    if (this.isOver || !server.isUp) return;
    server.heard(this.session!);
    const turn: Turn = { request, reply: undefined, read: this.readOf(request) };
    this.turns.push(turn);
    if (!turn.read) {
      server.toLeader(() => {
        const { zxid, code, path } = this.write(request);
        server.afterAll(() => {
          // The server does not reply: client and leader disagree on where the session is.
          if (code === CODE.sessionMoved) return this.end();
          const node = server.tree.get(path);
          turn.reply = reply(request.xid, zxid, code, (to) => {
            if (request.name !== 'create' && request.name !== 'createContainer') return;
            to.text(path);
            // Its session may have ended in the same moment.
            if (node) writeStat(to, node);
          });
          this.goOn();
        });
      });
    }
    this.goOn();
  }

  /** Replies come in the order of the requests. */
  private goOn(): void {
    for (let turn = this.turns[0]; turn; turn = this.turns[0]) {
      turn.reply ??= turn.read?.();
      if (!turn.reply) return;
      this.turns.shift();
      this.send(turn.reply);
      if (turn.request.name === 'close') this.end();
    }
  }

  /** What the leader does for a request. */
  private write(request: Request): Written {
    const { ensemble } = this.server;
    const session = this.session!;
    if (request.name === 'sync') return { zxid: this.server.lastSeen, code: 0, path: '' };
    const fault = ensemble.faultOf(session, this.server);
    if (fault !== undefined) return ensemble.refuse(fault);
    switch (request.name) {
      case 'create':
        return ensemble.create(request.path, {
          owner: (request.flags & EPHEMERAL) > 0 ? session : 0n,
          isSequential: (request.flags & SEQUENTIAL) > 0,
          isContainer: false,
        });
      case 'createContainer':
        return ensemble.create(request.path, { owner: 0n, isSequential: false, isContainer: true });
      case 'delete':
        return ensemble.delete(request.path);
      case 'close':
        return { zxid: ensemble.close(session), code: 0, path: '' };
      default:
        throw new Error(`${request.name} writes nothing`);
    }
  }

  /** What the server itself replies; undefined for what the leader decides. */
  private readOf(request: Request): (() => Buffer) | undefined {
    const { server } = this;
    const { xid } = request;
    switch (request.name) {
      case 'auth':
        return () => reply(xid, server.lastSeen);
      case 'getData':
        return () => this.look(request, 'data');
      case 'getChildren':
        return () => this.look(request, 'children');
      case 'setWatches':
        return () => {
          this.setWatches(request);
          return reply(xid, server.lastSeen);
        };
      default:
        return undefined;
    }
  }

  private look(
    { xid, path, watched }: Extract<Request, { watched: boolean }>,
    what: 'data' | 'children',
  ): Buffer {
    const { server } = this;
    const node = server.tree.get(path);
    if (!node) return reply(xid, server.lastSeen, CODE.noNode);
    if (watched) server.watch(what, path, this);
    return reply(xid, server.lastSeen, 0, (to) => {
      if (what === 'children') to.list([...node.children], (name) => to.text(name));
      else {
        to.bytes(Buffer.alloc(0));
        writeStat(to, node);
      }
    });
  }

  /** What has changed since then is told at once; the rest is watched. */
  private setWatches({ lastSeen, data, children }: Extract<Request, { name: 'setWatches' }>): void {
    const { server } = this;
    const { saw } = server.ensemble.terms;
    for (const path of data) {
      const node = server.tree.get(path);
      if (!node) saw('a watch is set again too late');
      if (!node) this.send(eventOf(DELETED, path));
      else if (node.created > lastSeen) this.send(eventOf(CHANGED, path));
      else server.watch('data', path, this);
    }
    for (const path of children) {
      const node = server.tree.get(path);
      if (!node) this.send(eventOf(DELETED, path));
      else if (node.childrenChanged > lastSeen) this.send(eventOf(CHILDREN_CHANGED, path));
      else server.watch('children', path, this);
    }
  }
}
