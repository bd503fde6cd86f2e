import { connect, type Socket } from 'node:net';
import { ADMIN } from '../../support/servers/redis-configuration.js';

/** A command that the server carried out. */
export interface MonitoredCommand {
  /** The server's wall clock, in ms. */
  readonly serverMs: number;
  /** Whether a script did it. */
  readonly inScript: boolean;
  readonly words: readonly string[];
}

const LINE = /^\+(\d+\.\d+) \[\d+ (\S*)\] (.*)$/;
const RETRY_MS = 2;

const wordsOf = (text: string): string[] =>
  text
    .slice(1, -1)
    .split('" "')
    .map((word) => word.replace(/\\(["\\])/g, '$1'));

/** Reads a line of MONITOR; undefined when it is none. */
export const readMonitorLine = (line: string): MonitoredCommand | undefined => {
  const [, time, source, words] = LINE.exec(line) ?? [];
  return words === undefined
    ? undefined
    : { serverMs: Number(time) * 1_000, inScript: source === 'lua', words: wordsOf(words) };
};

/**
 * Sees every command in the order in which the server carries it out. Keeps connecting while the server is down, and
 * a server that still loads its data lets it in already.
 */
export class RedisMonitor {
  private socket: Socket | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;
  private attachedTo: Socket | undefined;

  constructor(
    private readonly port: number,
    private readonly onCommand: (command: MonitoredCommand) => void,
    private readonly onAttached: () => void = () => undefined,
  ) {
    this.open();
  }

  /** Whether commands are seen now. */
  get isAttached(): boolean {
    return this.attachedTo !== undefined && this.attachedTo === this.socket;
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.destroy();
  }

  private open(): void {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    this.socket = socket;
    let rest = '';
    let replies = 0;
    socket.on('connect', () => socket.write(`AUTH ${ADMIN.username} ${ADMIN.password}\r\nMONITOR\r\n`));
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString('latin1')).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (replies < 2) {
          if (++replies === 2) this.attached(socket);
        } else this.read(line);
      }
    });
    socket.on('close', () => {
      this.attachedTo = undefined;
      if (!this.closed) this.timer = setTimeout(() => this.open(), RETRY_MS);
    });
  }

  private attached(socket: Socket): void {
    this.attachedTo = socket;
    this.onAttached();
  }

  private read(line: string): void {
    const command = readMonitorLine(line);
    if (command) this.onCommand(command);
  }
}
