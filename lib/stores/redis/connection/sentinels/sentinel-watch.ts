import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Runtime } from '../../../../core/util/runtime.js';
import { seenFromHere, type ServerAddress } from '../nat-map.js';
import { socketOf, type ClientSocket, type RedisLike } from '../redis-client.js';
import type { StartingClients } from '../starting-clients.js';
import { SentinelListener } from './sentinel-listener.js';
import { sentinelSettingsOf, type SentinelSettings } from './sentinel-settings.js';

/**
 * Time after a change of the master in which new connections to another server are dropped, in ms. Some sentinels learn
 * of the change later than others, and a client may ask one of them.
 */
const SETTLING_MS = 1_000;

/**
 * Listens to the sentinels for a new master, and drops the connections of the locks that lead to another server. The
 * clients reconnect, and ask the sentinels again.
 */
export class SentinelWatch {
  onWarning: (warning: string) => void = () => undefined;
  /** ECMAScript-private: clients know the password. */
  readonly #clients: readonly RedisLike[];
  private readonly listeners = new Map<string, SentinelListener>();
  private readonly settings: SentinelSettings;
  private latest: ServerAddress | undefined;
  private settledAt = -Infinity;
  private hasWarned = false;
  private closed = false;

  /** Starts listening at the first connection of the first client. */
  constructor(
    clients: readonly [RedisLike, RedisLike],
    private readonly starting: StartingClients,
    private readonly runtime: Runtime,
  ) {
    this.#clients = clients;
    this.settings = sentinelSettingsOf(clients[0]);
    clients[0].on('connect', () => this.add(this.settings.addresses));
    for (const client of clients) {
      client.on('ready', () => {
        if (this.latest && runtime.now() < this.settledAt) void leave(client, this.latest, false);
      });
    }
  }

  close(): void {
    this.closed = true;
    for (const listener of this.listeners.values()) listener.close();
    this.listeners.clear();
  }

  private add(addresses: readonly ServerAddress[]): void {
    const { listeners, settings, runtime } = this;
    for (const at of addresses) {
      const name = `${at.host}:${at.port}`;
      if (this.closed || listeners.size >= settings.max || this.isListenedTo(at)) continue;
      const client = this.starting.add(settings.connect(at));
      const listener = new SentinelListener(client, settings, runtime, {
        master: (master, isNews) => this.moved(seenFromHere(master, settings.natMap), isNews),
        others: (others) => {
          if (settings.discovers) this.add(others.map((other) => seenFromHere(other, settings.natMap)));
        },
        refused: (error) => this.warn(error),
      });
      listeners.set(name, listener);
    }
  }

  private isListenedTo(at: ServerAddress): boolean {
    if (this.listeners.has(`${at.host}:${at.port}`)) return true;
    return [...this.listeners.values()].some(({ socket }) => socket && isAt(socket, at));
  }

  private moved(to: ServerAddress, isNews: boolean): void {
    this.latest = to;
    this.settledAt = this.runtime.now() + SETTLING_MS;
    for (const client of this.#clients) void leave(client, to, isNews);
  }

  private warn({ message }: Error): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    this.onWarning(
      `A sentinel refuses SUBSCRIBE (${message}): after a planned failover this process may take locks on the old master ` +
        'for about 10 s, while others take them on the new one. Allow the user of the sentinels +subscribe &+switch-master.',
    );
  }
}

/** Ends the connection of a client unless it leads to this server; with `isNews` also when that is unknown. */
const leave = async (client: RedisLike, to: ServerAddress, isNews: boolean): Promise<void> => {
  const socket = socketOf(client);
  if (!socket || (await leadsTo(socket, to, !isNews))) return;
  socket.destroy();
};

const leadsTo = async (socket: ClientSocket, to: ServerAddress, otherwise: boolean): Promise<boolean> => {
  if (isAt(socket, to)) return true;
  // Still connecting: its `ready` event checks it again.
  if (socket.remotePort === undefined) return otherwise;
  if (socket.remotePort !== to.port || isIP(to.host)) return false;
  try {
    const found = await lookup(to.host, { all: true });
    return found.some(({ address }) => isAt(socket, { host: address, port: to.port }));
  } catch {
    return otherwise;
  }
};

const isAt = ({ remoteAddress = '', remotePort }: ClientSocket, { host, port }: ServerAddress): boolean =>
  remotePort === port && remoteAddress.replace(/^::ffff:/, '') === host;
