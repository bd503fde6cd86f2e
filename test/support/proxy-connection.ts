import type { Socket } from 'node:net';
import { reset } from './loopback.js';

/** `toServer`: requests. `toClient`: replies. */
export type Direction = 'toServer' | 'toClient';

/** What a link does with what it is given: pass it on, keep it for later, or lose it. */
type Mode = 'forward' | 'hold' | 'drop';

/** What is wrong with a connection; settings of the proxy are handed to its connections as one of these. */
export interface Faults {
  readonly mode: Readonly<Record<Direction, Mode>>;
  readonly delayMs: Readonly<Record<Direction, number>>;
}

export const HEALTHY: Faults = {
  mode: { toServer: 'forward', toClient: 'forward' },
  delayMs: { toServer: 0, toClient: 0 },
};
export const BOTH: readonly Direction[] = ['toServer', 'toClient'];
const REMEMBERED_CHARS = 64 * 1024;
/** And of the beginning, where a client says its name. */
const REMEMBERED_OF_BEGINNING = 8 * 1024;

export const setFor = <T>(
  record: Readonly<Record<Direction, T>>,
  directions: readonly Direction[],
  value: T,
) => ({
  ...record,
  ...Object.fromEntries(directions.map((direction) => [direction, value])),
});

/** One direction of one connection: a queue of what came in, each with the time from which it may go out. */
class Link {
  private readonly queue: { readonly dueAt: number; readonly deliver: () => void }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private mode: Mode = 'forward';
  private delayMs = 0;
  /** True once something was lost: what comes later no longer belongs to what came before. */
  broken = false;

  constructor(private readonly sink: Socket) {}

  set(mode: Mode, delayMs: number): void {
    this.mode = mode;
    this.delayMs = delayMs;
    this.pump();
  }

  data(chunk: Buffer): void {
    this.put(() => this.sink.write(chunk));
  }

  end(): void {
    this.put(() => this.sink.end());
  }

  gone(): void {
    this.put(() => this.sink.destroy());
  }

  clear(): void {
    clearTimeout(this.timer);
    this.queue.length = 0;
  }

  private put(deliver: () => void): void {
    if (this.mode === 'drop') {
      this.broken = true;
      return;
    }
    this.queue.push({ dueAt: performance.now() + this.delayMs, deliver });
    this.pump();
  }

  private pump(): void {
    clearTimeout(this.timer);
    if (this.mode === 'hold') return;
    for (let next = this.queue[0]; next; next = this.queue[0]) {
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0) {
        this.timer = setTimeout(() => this.pump(), waitMs);
        return;
      }
      this.queue.shift();
      if (!this.sink.destroyed) next.deliver();
    }
  }
}

/** One client's connection through the proxy. Its faults can differ from those of the others. */
export class ProxyConnection {
  private readonly links: Readonly<Record<Direction, Link>>;
  private readonly seen: Record<Direction, string> = { toServer: '', toClient: '' };
  private readonly begun: Record<Direction, string> = { toServer: '', toClient: '' };
  private faults = HEALTHY;

  constructor(
    /** Counts up from 1 in the order in which clients connected. */
    readonly id: number,
    private readonly client: Socket,
    private readonly server: Socket,
    onData: (direction: Direction, chunk: Buffer) => void,
  ) {
    this.links = { toServer: new Link(server), toClient: new Link(client) };
    this.wire('toServer', client, onData);
    this.wire('toClient', server, onData);
  }

  /**
   * Whether the first 8 or the last 64 KiB that went this way contain `text`, as commands do: `'SUBSCRIBE'`. Not as the
   * beginning of a longer word, which may be a name in a script.
   */
  carried(text: string, direction: Direction = 'toServer'): boolean {
    const { begun, seen } = this;
    const word = new RegExp(`${text.replace(/\W/g, '\\$&')}(?!\\w)`, 'i');
    return [begun, seen].some((part) => word.test(part[direction]));
  }

  /** Lets everything take this much longer, in ms, from now on. */
  delay(delayMs: number, directions: readonly Direction[] = BOTH): void {
    this.apply({ ...this.faults, delayMs: setFor(this.faults.delayMs, directions, delayMs) });
  }

  /**
   * Half-open: nothing goes through, not even the end of a connection, and nobody is told. What is sent meanwhile
   * arrives after `restore`, as it does when a network heals in time.
   */
  blackhole(directions: readonly Direction[] = BOTH): void {
    this.apply({ ...this.faults, mode: setFor(this.faults.mode, directions, 'hold') });
  }

  /** Requests arrive and are carried out, their replies are lost. `restore` then cuts the connection. */
  swallowReplies(): void {
    this.apply({ ...this.faults, mode: setFor(this.faults.mode, ['toClient'], 'drop') });
  }

  /** Both ends see a reset connection, at once. */
  cut(): void {
    for (const direction of BOTH) this.links[direction].clear();
    reset(this.client);
    reset(this.server);
  }

  /** Ends every fault of this connection. One that has lost something is cut: no TCP connection goes on after that. */
  restore(): void {
    if (BOTH.some((direction) => this.links[direction].broken)) this.cut();
    else this.apply(HEALTHY);
  }

  /** For the proxy, whose faults a new connection starts with. */
  apply(faults: Faults): void {
    this.faults = faults;
    for (const direction of BOTH)
      this.links[direction].set(faults.mode[direction], faults.delayMs[direction]);
  }

  private wire(
    direction: Direction,
    source: Socket,
    onData: (direction: Direction, chunk: Buffer) => void,
  ): void {
    const link = this.links[direction];
    source.setNoDelay(true);
    source.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      if (this.begun[direction].length < REMEMBERED_OF_BEGINNING) this.begun[direction] += text;
      this.seen[direction] = (this.seen[direction] + text).slice(-REMEMBERED_CHARS);
      onData(direction, chunk);
      link.data(chunk);
    });
    source.on('end', () => link.end());
    // Both a reset and the normal end arrive here; the other side hears of it through the same faulty link.
    source.on('error', () => link.gone());
    source.on('close', () => link.gone());
  }
}
