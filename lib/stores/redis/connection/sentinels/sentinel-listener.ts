import { isArray } from '../../../../core/util/describe.js';
import type { Runtime } from '../../../../core/util/runtime.js';
import { cleanError, secretsOfClient } from '../clean-error.js';
import { CommandDeadlines } from '../../../load/command-deadlines.js';
import { watchHandshakes } from '../handshake-watch.js';
import type { ServerAddress } from '../nat-map.js';
import { dropSocket, gatherTick, socketOf, type ClientSocket, type RedisLike } from '../redis-client.js';
import { isNotPermitted } from '../redis-failure.js';
import { every } from '../timers.js';
import type { SentinelSettings } from './sentinel-settings.js';

const SWITCH_MASTER = '+switch-master';
/** Interval at which an idle connection to a sentinel is checked, in ms. */
const PING_MS = 10_000;

export interface SentinelReports {
  /** Called when the sentinel has a new master (`isNews`), or names one that it did not name before. */
  master(at: ServerAddress, isNews: boolean): void;
  /** Called with the other sentinels that the sentinel knows. */
  others(at: readonly ServerAddress[]): void;
  /** Called when the sentinel's user lacks a right that a listener needs. */
  refused(error: Error): void;
}

/** Listens to one sentinel for a new master. Reconnects until it is closed. */
export class SentinelListener {
  readonly #client: RedisLike;
  private readonly deadlines: CommandDeadlines;
  private readonly master: string;
  private endPings: (() => void) | undefined;
  private named = '';

  constructor(
    client: RedisLike,
    { timeoutMs, name }: Pick<SentinelSettings, 'timeoutMs' | 'name'>,
    runtime: Runtime,
    private readonly reports: SentinelReports,
  ) {
    this.#client = client;
    this.master = name;
    this.deadlines = new CommandDeadlines(timeoutMs, runtime);
    // Only the locks' own connections report what is wrong; this client goes on trying.
    client.on('error', () => undefined);
    client.on('close', () => this.endPings?.());
    client.on('message', (_channel, text) => this.notified(text));
    watchHandshakes(client, this.deadlines, () => this.listen());
    client.connect().catch(() => undefined);
  }

  get socket(): ClientSocket | undefined {
    return socketOf(this.#client);
  }

  close(): void {
    this.endPings?.();
    this.#client.disconnect();
  }

  /** Subscribes, and asks for the master in the same packet: a change between two packets would be missed. */
  private listen(): void {
    const { master } = this;
    this.endPings?.();
    this.endPings = every(this.deadlines.runtime, PING_MS, () => void this.send('ping'));
    gatherTick(this.#client);
    this.send('sentinel', 'get-master-addr-by-name', master)
      .then((reply) => this.names(reply))
      .catch(() => undefined);
    this.send('sentinel', 'sentinels', master)
      .then((reply) => this.reports.others(readSentinels(reply)))
      .catch(() => undefined);
    this.withDeadline(this.#client.subscribe(SWITCH_MASTER)).catch((error: unknown) => {
      if (isNotPermitted(error)) this.reports.refused(cleanError(error, secretsOfClient(this.#client)));
    });
  }

  private names(reply: unknown): void {
    if (!isArray(reply)) return;
    const at = { host: String(reply[0]), port: Number(reply[1]) };
    const named = `${at.host} ${at.port}`;
    // A sentinel that is cut off from the others names the old master at each connection: believe it once.
    if (named === this.named) return;
    this.named = named;
    this.reports.master(at, false);
  }

  /** Reads the message: name, old host, old port, new host, new port. */
  private notified(text: string): void {
    const [name, , , host, port] = text.split(' ');
    if (name !== this.master || host === undefined) return;
    this.named = `${host} ${port}`;
    this.reports.master({ host, port: Number(port) }, true);
  }

  private send(command: string, ...args: string[]): Promise<unknown> {
    const reply = this.withDeadline(this.#client.call(command, ...args));
    reply.catch(() => undefined);
    return reply;
  }

  /** Waits for a reply. Reconnects to a sentinel that does not reply in time. */
  private withDeadline(reply: Promise<unknown>): Promise<unknown> {
    const inFlight = this.deadlines.add(() => {
      inFlight.done = true;
      dropSocket(this.#client);
    });
    return reply.finally(() => (inFlight.done = true));
  }
}

/** Reads the reply of SENTINEL SENTINELS: alternating fields and values. Leaves out disconnected sentinels. */
const readSentinels = (reply: unknown): readonly ServerAddress[] =>
  (isArray(reply) ? reply : []).flatMap((one) => {
    const fields = isArray(one) ? one.map(String) : [];
    const field = (name: string): string | undefined => fields[fields.indexOf(name) + 1];
    const [host, port, flags = ''] = [field('ip'), Number(field('port')), field('flags')];
    return host && port && !flags.split(',').includes('disconnected') ? [{ host, port }] : [];
  });
