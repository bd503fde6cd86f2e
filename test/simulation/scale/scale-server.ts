import type { Agenda } from '../engine/agenda.js';
import type { Server } from '../network/link.js';
import type { Session } from '../network/session.js';
import type { Command, Reply } from '../server/command.js';
import { encode, ErrorReply, RespReader, type RespValue } from '../server/resp.js';
import type { BorrowedServer } from '../server/spare-servers.js';
import type { Valkey, ValkeySocket } from '../server/valkey.js';
import { between, NO_COST, type Cost } from './cost.js';
import { SubscriberCounts } from './subscriber-counts.js';
import { counted, COUNTING_COMMAND, ENTRIES_KEY } from './counted-script.js';

/** The wall clock of the server at the beginning, in ms. */
const WALL_START_MS = 1_000_000;

/** Commands with which the measurement reads the server. No script of the library uses them. */
const OWN_COMMANDS = new Set([COUNTING_COMMAND, 'info', 'memory|usage', 'flushall']);

/** Largest number of passes in which the server sends a reply. */
const MAX_PASSES = 100;

/** One connection, as the server has it. */
interface Connection {
  readonly socket: ValkeySocket;
  /** Replies that the server has sent and that no request has taken yet. */
  readonly replies: RespValue[];
}

const isMessage = (value: RespValue): value is readonly [string, string, string] =>
  Array.isArray(value) && (value[0] === 'message' || value[0] === 'smessage');

/** Returns the number of bytes in which a server sends a value. */
const bytesOf = (value: RespValue): number => {
  if (value === null) return '$-1\r\n'.length;
  if (typeof value === 'number') return `:${value}\r\n`.length;
  if (typeof value === 'string') return `$${value.length}\r\n${value}\r\n`.length;
  if (value instanceof ErrorReply) return `-${value.message}\r\n`.length;
  return value.reduce<number>((sum, one) => sum + bytesOf(one), `*${value.length}\r\n`.length);
};

/** Replies to commands that the server itself does not answer as a cluster would; undefined: it executes the command. */
export type Replying = (session: Session, command: Command) => RespValue | undefined;

/**
 * A real server on virtual time that counts what it does. It has no MONITOR, which costs more than everything else with
 * a thousand processes. Each script that it executes also counts the entries that it reads.
 */
export class ScaleServer implements Server {
  readonly accepts = true;
  private readonly connections = new Map<Session, Connection>();
  private readonly admin: Connection;
  private readonly valkey: Valkey;
  /** The hash of each script. */
  private readonly hashes = new Map<string, string>();
  /** For each hash of a script, the hash of the counting one in the server. */
  private readonly loaded = new Map<string, string>();
  private readonly sent = { requests: 0, bytes: 0, messages: 0 };
  private readonly subscribers: SubscriberCounts;
  private sessionIds = 0;
  private readonly awaited = new Map<string, (cost: Cost) => void>();

  constructor(
    agenda: Agenda,
    { valkey, monotonicFromMs }: BorrowedServer,
    private readonly replying: Replying = () => undefined,
  ) {
    this.valkey = valkey;
    valkey.clock = {
      wallMs: () => WALL_START_MS + agenda.now,
      monotonicMs: () => monotonicFromMs + agenda.now,
    };
    this.admin = this.connect();
    const other = this.connect();
    this.subscribers = new SubscriberCounts((command) => {
      // While subscribed, a connection may send nothing else.
      return this.execute(command[0] === 'pubsub' ? this.admin : other, command)[0]!;
    });
    this.ask('flushall');
  }

  /** Everything so far. */
  get cost(): Cost {
    let commands = -this.subscribers.commands;
    const stats = this.askText('info', 'commandstats');
    for (const [, name, calls] of stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      if (!OWN_COMMANDS.has(name!)) commands += Number(calls);
    }
    const entries = Number(this.ask(COUNTING_COMMAND, ENTRIES_KEY, 0));
    return { ...this.sent, commands, entries };
  }

  /** Number of channels with subscribers, and of subscribers of all of them. */
  get subscriptions(): { readonly channels: number; readonly receivers: number } {
    const counts = [
      ['channels', 'numsub'],
      ['shardchannels', 'shardnumsub'],
    ].map(([list, count]) => {
      const channels = this.ask('pubsub', list!) as readonly string[];
      const receivers = channels.length > 0 ? (this.ask('pubsub', count!, ...channels) as RespValue[]) : [];
      return { channels: channels.length, receivers: receivers.filter((one) => typeof one === 'number') };
    });
    return {
      channels: counts.reduce((sum, one) => sum + one.channels, 0),
      receivers: counts.flatMap(({ receivers }) => receivers).reduce((sum, one) => sum + one, 0),
    };
  }

  /** Returns the memory of these keys in bytes, as MEMORY USAGE counts it. */
  memoryOf(keys: readonly string[]): number {
    return keys.reduce((sum, key) => sum + Number(this.ask('memory', 'usage', key, 'samples', 0) ?? 0), 0);
  }

  /** Resolves with the cost of the next command that the process sends: that command alone. */
  nextOf(process: string): Promise<Cost> {
    return new Promise((resolve) => this.awaited.set(process, resolve));
  }

  nextSessionId(): number {
    return ++this.sessionIds;
  }

  opened(session: Session): void {
    this.connections.set(session, this.connect(session));
  }

  closed(session: Session): void {
    this.connections.get(session)?.socket.close();
    this.connections.delete(session);
  }

  receive(
    session: Session,
    command: Command,
    _sentAt: number,
    reply: (replies: readonly Reply[]) => void,
  ): void {
    if (!session.openThere) return;
    const { name } = session.process;
    const onCost = this.awaited.get(name);
    this.awaited.delete(name);
    const before = onCost ? this.cost : NO_COST;
    const bytes = encode(command);
    this.sent.requests += 1;
    this.sent.bytes += bytes.length;
    const known = this.replying(session, command) ?? this.replyOfCache(command);
    if (known === undefined) {
      const replies = this.execute(this.connections.get(session)!, this.counting(command));
      this.subscribers.executed(session, command);
      reply(replies);
    } else {
      this.sent.bytes += bytesOf(known);
      reply([known]);
    }
    onCost?.(between(before, this.cost));
  }

  /** Leaves the server as it was: other runs use it. */
  close(): void {
    this.ask('flushall');
    this.connections.clear();
    this.valkey.closeAll();
  }

  /** Loads each script once: the processes load all of them on each connection. */
  private replyOfCache([name, what, ...args]: Command): RespValue | undefined {
    if (name !== 'script') return undefined;
    if (what === 'exists') return args.map((hash) => (this.loaded.has(String(hash)) ? 1 : 0));
    return what === 'load' ? this.hashOf(String(args[0])) : undefined;
  }

  private hashOf(source: string): string {
    const known = this.hashes.get(source);
    if (known !== undefined) return known;
    const hash = this.askText('script', 'load', source);
    this.loaded.set(hash, this.askText('script', 'load', counted(source)));
    this.hashes.set(source, hash);
    return hash;
  }

  private counting(command: Command): Command {
    const [name, script, ...rest] = command;
    if (name === 'eval') return ['evalsha', this.loaded.get(this.hashOf(String(script)))!, ...rest];
    if (name !== 'evalsha') return command;
    return [name, this.loaded.get(String(script)) ?? String(script), ...rest];
  }

  private execute(connection: Connection, command: Command): readonly Reply[] {
    connection.socket.send(encode(command));
    const expected = /^s?(un)?subscribe$/.test(String(command[0])) ? command.length - 1 : 1;
    // The server sends a large reply in several passes.
    for (let pass = 0; pass < MAX_PASSES && connection.replies.length < expected; pass++) this.valkey.run();
    const replies = connection.replies.splice(0);
    if (replies.length !== expected) throw new Error(`${replies.length} replies to ${command[0]}`);
    return replies;
  }

  private ask(...command: Command): RespValue {
    return this.execute(this.admin, command)[0]!;
  }

  private askText(...command: Command): string {
    const reply = this.ask(...command);
    if (typeof reply !== 'string') throw new Error(`${command[0]} replies with ${JSON.stringify(reply)}`);
    return reply;
  }

  private connect(session?: Session): Connection {
    const reader = new RespReader();
    const replies: RespValue[] = [];
    const onBytes = (bytes: string): void => {
      if (session) this.sent.bytes += bytes.length;
      for (const value of reader.read(bytes)) {
        if (!session || !isMessage(value)) replies.push(value);
        else {
          this.sent.messages += 1;
          session.push(value[1], value[2]);
        }
      }
    };
    return { socket: this.valkey.connect(onBytes, () => session?.endByServer()), replies };
  }
}
