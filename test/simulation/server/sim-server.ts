import type { ForcingScripts } from '../../faults/topology/hold-watch.js';
import { batchRuns } from '../../support/redis/batch-runs.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import type { Host, Session } from '../network/session.js';
import type { Command, Reply } from './command.js';
import { KEY_PREFIX, Recorder, type Told } from './recorder.js';
import { encode, ErrorReply, RespReader, type RespValue } from './resp.js';
import type { BorrowedServer } from './spare-servers.js';
import type { Valkey, ValkeySocket } from './valkey.js';

/** What the server replies to writes for a while, instead of executing them. */
export type Mood = 'readonly' | 'tryagain' | 'loading' | 'oom';

/** The wall clock of the server at the beginning, in ms. Small, so that tokens can be read. */
const WALL_START_MS = 1_000_000;

const REFUSALS: Partial<Record<Mood, ErrorReply>> = {
  tryagain: new ErrorReply('TRYAGAIN Multiple keys request during rehashing of slot'),
  loading: new ErrorReply('LOADING Redis is loading the dataset in memory'),
};
const NO_RIGHT_TO_KILL = new ErrorReply(
  "NOPERM User default has no permissions to run the 'client|kill' command",
);

/** Returns all keys, each with its value and the time at which it expires, or -1. */
const DUMP_ALL = `local all = {}
for _, key in ipairs(redis.call('keys', '*')) do
  all[#all + 1] = { key, redis.call('dump', key), redis.call('pexpiretime', key) }
end
return all`;

/** One connection, as the server has it. */
interface Connection {
  readonly socket: ValkeySocket;
  /** What the server has sent since the last time. */
  readonly sent: RespValue[];
}

/** A copy of all keys: the key, its value, and when it expires. */
type Keys = readonly (readonly [key: string, value: string, expiresAtMs: number])[];

/** What a replica has that lags behind. */
interface Replica {
  readonly keys: Keys;
  readonly past: Told;
}

const isMessage = (value: RespValue): value is readonly ['message', string, string] =>
  Array.isArray(value) && value[0] === 'message';

/** A real server on virtual time, with its sessions. It can stop, restart, refuse, and be replaced by a replica. */
export class SimServer implements Host {
  /** Called with owners whose holds may last longer than was said when they were granted. */
  onProlonged: (owners: Iterable<string>) => void = () => undefined;
  /** Called for each script that arrives; `givenUp`: its sender does not wait for it any more. */
  onScript: (words: readonly string[], sentAt: number, givenUp: boolean) => void = () => undefined;
  private readonly recorder: Recorder;
  private readonly connections = new Map<Session, Connection>();
  private readonly admin: Connection;
  private readonly replicas = new Map<number, Replica>();
  /** All words of scripts that arrived, each with the time of the first. */
  private readonly words = new Map<string, number>();
  /** Hashes of the scripts that were loaded since the last start. */
  private loaded = new Set<string>();
  private readonly valkey: Valkey;
  private readonly scripts: Map<string, string>;
  /** How many commands reached the server. */
  requests = 0;
  private sessionIds = 0;
  private downUntil = 0;
  private stoppedUntil = 0;
  /** How long each command takes, until when that lasts, and when the last one that has arrived is done. */
  private slowness = { eachMs: 0, until: 0 };
  private busyUntil = 0;
  private mood: { readonly kind: Mood; readonly until: number } | undefined;
  private skewMs = 0;

  constructor(
    private readonly agenda: Agenda,
    chronicle: Chronicle,
    private readonly mayKill: boolean,
    forcing: ForcingScripts,
    { valkey, scripts, monotonicFromMs }: BorrowedServer,
  ) {
    this.valkey = valkey;
    this.scripts = scripts;
    valkey.clock = {
      wallMs: () => WALL_START_MS + agenda.now + this.skewMs,
      monotonicMs: () => monotonicFromMs + agenda.now,
    };
    this.recorder = new Recorder(agenda, chronicle, forcing);
    this.admin = this.connect();
    this.say('flushall');
    let rest = '';
    const monitor = valkey.connect((bytes) => {
      const lines = (rest + bytes).split('\r\n');
      rest = lines.pop()!;
      for (const line of lines) this.recorder.line(line);
    });
    monitor.send(encode(['monitor']));
    valkey.run();
  }

  /** Whether a connection can be made: a stopped server's kernel accepts it, a dead one's does not. */
  get accepts(): boolean {
    return this.agenda.now >= this.downUntil;
  }

  get owners(): readonly (readonly [key: string, owner: string])[] {
    return this.recorder.owners;
  }

  nextSessionId(): number {
    return ++this.sessionIds;
  }

  opened(session: Session): void {
    this.connections.set(
      session,
      this.connect(() => session.endByServer()),
    );
  }

  closed(session: Session): void {
    this.connections.get(session)?.socket.close();
    this.connections.delete(session);
  }

  receive(
    session: Session,
    command: Command,
    sentAt: number,
    reply: (replies: readonly Reply[]) => void,
  ): void {
    this.requests += 1;
    const { now } = this.agenda;
    const { eachMs, until } = this.slowness;
    this.busyUntil = Math.max(this.busyUntil, now) + (now < until ? eachMs : 0);
    const serve = (): void => this.serve(session, command, sentAt, reply);
    if (this.busyUntil > now) this.agenda.quietly(this.busyUntil, serve);
    else serve();
  }

  private serve(
    session: Session,
    command: Command,
    sentAt: number,
    reply: (replies: readonly Reply[]) => void,
  ): void {
    if (this.agenda.now < this.stoppedUntil) {
      this.agenda.quietly(this.stoppedUntil, () => this.serve(session, command, sentAt, reply));
    } else if (session.openThere) {
      if (isScript(command)) this.arrived(session, command, sentAt);
      const known = this.refusalOf(command) ?? this.replyOfCache(command);
      reply(known !== undefined ? [known] : this.execute(this.connections.get(session)!, command));
    }
  }

  /** Takes so long for each command that arrives until `until`, one after the other. */
  slow(eachMs: number, until: number): void {
    this.slowness = { eachMs, until };
  }

  /** How long it takes for what has arrived. */
  get backlogMs(): number {
    return Math.max(0, this.busyUntil - this.agenda.now);
  }

  /** Does not run until `until`, but its sessions live. */
  stop(until: number): void {
    this.stoppedUntil = until;
  }

  restart(downMs: number, keepsData: boolean): void {
    this.goDown(downMs);
    if (!keepsData) this.loseData('the server comes back without its data');
  }

  /** A replica will take over at `at` that knows nothing of the last so many ms. */
  planFailOver(at: number, behindMs: number): void {
    const from = at - behindMs;
    this.agenda.quietly(from, () =>
      this.replicas.set(from, { keys: this.dumpAll(), past: this.recorder.past }),
    );
  }

  failOver(at: number, downMs: number, behindMs: number): void {
    this.goDown(downMs);
    this.endMood();
    const from = at - behindMs;
    this.recorder.unprotect(`a replica takes over that is ${behindMs} ms behind`);
    const { keys, past } = this.replicas.get(from) ?? { keys: [], past: [] };
    this.restore(keys);
    this.recorder.goBackTo(past);
    // The replica may have holds of these owners that they have released since.
    this.onProlonged([...this.words].filter(([, since]) => since <= from).map(([word]) => word));
  }

  loseData(why: string): void {
    this.recorder.unprotect(why);
    this.change('flushall');
  }

  deleteKey(key: string): void {
    const finalKey = KEY_PREFIX + key;
    this.change('del', finalKey, `{${finalKey}}:timeout`);
    this.recorder.deleted(finalKey);
  }

  /** Sets the wall clock. Leases end by it. */
  jump(ms: number): void {
    this.recorder.unprotect(`the server's clock jumped by ${ms} ms`);
    // A server removes expired keys by and by. Here they are gone at once: a clock that is set back revives none.
    this.removeExpired();
    this.skewMs += ms;
    this.recorder.clockJumped(ms);
    this.removeExpired();
    if (ms < 0) this.onProlonged(this.owners.map(([, owner]) => owner));
  }

  refuse(kind: Mood, until: number): void {
    this.endMood();
    this.mood = { kind, until };
    if (kind === 'readonly') this.say('replicaof', '127.0.0.1', '1');
    if (kind === 'oom') this.say('config', 'set', 'maxmemory', '1');
    this.agenda.quietly(until, () => {
      if (this.mood && this.mood.until <= this.agenda.now) this.endMood();
    });
  }

  /** Writes down which holds have expired by now. */
  sweep(): void {
    this.recorder.settle();
  }

  /** Leaves the server as it was: other runs use it. */
  close(): void {
    this.endMood();
    for (const session of [...this.connections.keys()]) this.closed(session);
    this.valkey.closeAll();
  }

  private endMood(): void {
    if (this.mood?.kind === 'readonly') this.say('replicaof', 'no', 'one');
    if (this.mood?.kind === 'oom') this.say('config', 'set', 'maxmemory', '0');
    this.mood = undefined;
  }

  /** SCAN looks at each key, and removes those that have expired. */
  private removeExpired(): void {
    this.change('scan', '0', 'count', '100000');
  }

  /** Changes the data in whatever mood the server is. */
  private change(...command: Command): void {
    const isReadOnly = this.mood?.kind === 'readonly';
    if (isReadOnly) this.say('replicaof', 'no', 'one');
    this.say(...command);
    if (isReadOnly) this.say('replicaof', '127.0.0.1', '1');
  }

  private goDown(forMs: number): void {
    this.downUntil = this.agenda.now + forMs;
    this.busyUntil = 0;
    this.loaded = new Set();
    for (const session of [...this.connections.keys()]) session.endByServer();
  }

  private arrived(session: Session, command: Command, sentAt: number): void {
    const { now } = this.agenda;
    const words = command.map(String);
    // A batch has the owners of its runs in two pieces.
    for (const { args } of batchRuns(words.slice(3 + Number(words[2]))) ?? []) words.push(args[0]!);
    for (const word of words) if (!this.words.has(word)) this.words.set(word, now);
    this.onScript(words, sentAt, !session.openHere);
  }

  private refusalOf(command: Command): ErrorReply | undefined {
    if (!this.mayKill && command[0] === 'client' && command[1] === 'kill') return NO_RIGHT_TO_KILL;
    if (!this.mood || !(isScript(command) || command[0] === 'ping')) return undefined;
    if (this.mood.kind === 'tryagain' && command[0] === 'ping') return undefined;
    return REFUSALS[this.mood.kind];
  }

  /**
   * Returns the reply about scripts that the server has, as if each start of the server had emptied its cache. Really
   * each script is compiled once: the processes load all of them on each connection.
   */
  private replyOfCache([name, ...args]: Command): RespValue | undefined {
    if (name === 'evalsha' && !this.loaded.has(String(args[0]))) {
      return new ErrorReply('NOSCRIPT No matching script. Please use EVAL.');
    }
    if (name !== 'script') return undefined;
    if (args[0] === 'exists') return args.slice(1).map((sha) => (this.loaded.has(String(sha)) ? 1 : 0));
    if (args[0] !== 'load') return undefined;
    const source = String(args[1]);
    const sha = this.scripts.get(source) ?? (this.say('script', 'load', source) as string);
    this.scripts.set(source, sha);
    this.loaded.add(sha);
    return sha;
  }

  /** Lets the server execute a command. Returns its replies; SUBSCRIBE has one for each channel. */
  private execute(connection: Connection, command: Command): readonly Reply[] {
    connection.socket.send(encode(command));
    this.valkey.run();
    const replies = connection.sent.splice(0);
    for (const [session, { sent }] of this.connections) {
      for (const value of sent.splice(0)) if (isMessage(value)) session.push(value[1], value[2]);
    }
    this.recorder.settle();
    return replies;
  }

  private say(...command: Command): RespValue {
    return this.execute(this.admin, command)[0]!;
  }

  private connect(onClose?: () => void): Connection {
    const reader = new RespReader();
    const sent: RespValue[] = [];
    return { socket: this.valkey.connect((bytes) => sent.push(...reader.read(bytes)), onClose), sent };
  }

  private dumpAll(): Keys {
    return this.say('eval', DUMP_ALL, 0) as unknown as Keys;
  }

  private restore(keys: Keys): void {
    this.say('flushall');
    const now = WALL_START_MS + this.agenda.now + this.skewMs;
    for (const [key, value, expiresAtMs] of keys) {
      if (expiresAtMs >= 0 && expiresAtMs <= now) continue;
      const command = ['restore', key, String(Math.max(0, expiresAtMs)), value, 'absttl'];
      this.admin.socket.send(encode(command, 'latin1'));
      this.valkey.run();
      const [reply] = this.admin.sent.splice(0);
      if (reply !== 'OK') throw new Error(`RESTORE of ${key}: ${JSON.stringify(reply)}`);
    }
  }
}

const isScript = ([name]: Command): boolean => name === 'evalsha' || name === 'eval';
