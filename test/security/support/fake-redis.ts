import { createServer, type Server, type Socket } from 'node:net';
import { Script } from '../../../lib/stores/redis/connection/script.js';
import { EXCLUSIVE_EXTEND, EXCLUSIVE_INSPECT } from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import {
  QUEUE_ACQUIRE,
  QUEUE_FORCE_UNLOCK,
  QUEUE_INSPECT,
  QUEUE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import { batchOf } from '../../../lib/stores/redis/connection/script-batch.js';
import { BATCH_PARTS } from '../../../lib/stores/redis/kinds/any-kind.js';
import { batchRuns } from '../../support/redis/batch-runs.js';
import { listenOnFreePort, LOOPBACK } from '../../support/loopback.js';
import { readRequests, type Request } from './resp.js';

const SCRIPT_NAMES = new Map(
  Object.entries({
    acquire: QUEUE_ACQUIRE,
    release: QUEUE_RELEASE,
    extend: EXCLUSIVE_EXTEND,
    forceUnlock: QUEUE_FORCE_UNLOCK,
    inspect: EXCLUSIVE_INSPECT,
    queue: QUEUE_INSPECT,
    batch: batchOf(BATCH_PARTS).source,
  }).map(([name, source]) => [new Script(source).sha, name]),
);

/** A script of the library by its name, or a command in lower case. */
const nameOf = ([command = '', ...args]: Request): string => {
  const name = command.toLowerCase();
  return name === 'evalsha' ? (SCRIPT_NAMES.get(args[0] ?? '') ?? 'unknown script') : name;
};

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const GRANT = bulk('1700000000000000');
const RELEASED = ':0\r\n';

/** What each of a batch is answered. */
const ofBatch = ([, , count, ...rest]: Request): string => {
  const runs = batchRuns(rest.slice(Number(count))) ?? [];
  return `*${runs.length}\r\n${runs.map(({ letter }) => (letter === 'A' ? GRANT : RELEASED)).join('')}`;
};

const subscriptionReply = (word: string, channels: readonly string[]): string =>
  channels.map((channel, i) => `*3\r\n${bulk(word)}${bulk(channel)}:${i + 1}\r\n`).join('');

/** What a decent server says to a client for which every lock is free. */
const DECENT: Readonly<Record<string, (request: Request) => string>> = {
  info: () => bulk('redis_version:7.0.15\r\nloading:0\r\n'),
  ping: () => '+PONG\r\n',
  client: ([, word]) => (word?.toLowerCase() === 'info' ? bulk('id=7 addr=127.0.0.1:7 name=') : '+OK\r\n'),
  script: () => bulk('0'.repeat(40)),
  subscribe: ([, ...channels]) => subscriptionReply('subscribe', channels),
  unsubscribe: ([, ...channels]) => subscriptionReply('unsubscribe', channels),
  acquire: () => GRANT,
  release: () => RELEASED,
  batch: ofBatch,
  extend: (request) => `*${request[2] ?? 0}\r\n${':60000\r\n'.repeat(Number(request[2]))}`,
  inspect: () => `*4\r\n:1000\r\n${bulk('')}${bulk('somebody:1')}${bulk('1')}`,
  queue: () => '*0\r\n',
  forceUnlock: () => ':1\r\n',
};

/**
 * A server that speaks RESP and says what a test wants: a decent one by default, so that a test has to change only
 * the answer it is about.
 */
export class FakeRedis implements AsyncDisposable {
  private readonly replies = new Map<string, string | Buffer>();
  private readonly sockets = new Set<Socket>();
  private readonly forCommands = new Set<Socket>();
  private readonly counts = new Map<string, number>();
  private accepted = 0;

  private constructor(
    private readonly server: Server,
    private readonly port: number,
  ) {}

  static async start(): Promise<FakeRedis> {
    const server = createServer();
    const fake = new FakeRedis(server, await listenOnFreePort(server));
    server.on('connection', (socket) => fake.serve(socket));
    return fake;
  }

  get url(): string {
    return `redis://${LOOPBACK}:${this.port}`;
  }

  /** From now on this is the answer, byte by byte; undefined: the decent one again. */
  reply(name: string, bytes: string | Buffer | undefined): void {
    if (bytes === undefined) this.replies.delete(name);
    else this.replies.set(name, bytes);
  }

  /** Sends unrequested bytes on each connection that has been used for scripts. */
  say(bytes: string | Buffer): void {
    for (const socket of this.forCommands) socket.write(bytes);
  }

  /** Ends every connection. */
  hangUp(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** The number of accepted connections. */
  get connections(): number {
    return this.accepted;
  }

  /** How often it was asked this. */
  requestCount(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.hangUp();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private serve(socket: Socket): void {
    this.accepted += 1;
    this.sockets.add(socket);
    // Clients that are told nonsense hang up.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.forCommands.delete(socket);
    });
    readRequests(socket, (request) => {
      const name = nameOf(request);
      this.counts.set(name, this.requestCount(name) + 1);
      if (name === 'script') this.forCommands.add(socket);
      socket.write(this.replies.get(name) ?? DECENT[name]?.(request) ?? '+OK\r\n');
    });
  }
}
