import type { HistoryEvent, Mode } from '../../checker/history.js';
import type { MonitoredCommand } from './redis-monitor.js';

type End = Extract<HistoryEvent, { type: 'free' }>['how'];

interface Part {
  readonly mode: Mode;
  until: number;
}

interface Entering {
  readonly key: string;
  readonly owner: string;
  readonly until: number;
}

/** The tokens that the script at work gives, if it gives any. */
export type Tokens = { readonly token: number; readonly lastToken: number } | undefined;

/** The key that lives as long as a reader's lease: of which lock, and whose. */
const TIMEOUT = /^\{(.*)\}:([^{}]+):rwlock_timeout:1$/;
const WRITER = /:write$/;

/**
 * The same as `HoldWatch` for read-write locks: works out who read and who wrote, from the hash of the lock and from the keys
 * that live as long as readers may. A hash is one of these from the moment on in which a script writes a mode into it.
 */
export class ReadWriteWatch {
  /** For each key who is in. */
  private readonly keys = new Map<string, Map<string, Part>>();
  /** A reader whose key is there, and who is not in the hash yet. */
  private reader: Entering | undefined;
  /** A writer that is in the hash, which has no time to live yet. */
  private writer: Omit<Entering, 'until'> | undefined;

  constructor(
    private readonly keyPrefix: string,
    private readonly write: (event: HistoryEvent) => void,
  ) {}

  /** Another script, or part of one, begins. */
  begin(): void {
    this.reader = undefined;
    this.writer = undefined;
  }

  /** Takes in what a script did at `at`. True when it was done to a read-write lock. */
  take({ words }: MonitoredCommand, at: number, tokens: Tokens, forces: boolean): boolean {
    const [command = '', key = '', ...args] = words;
    const name = command.toLowerCase();
    const [, ofReader, owner] = TIMEOUT.exec(key) ?? [];
    if (ofReader?.startsWith(this.keyPrefix)) {
      this.ofReader(name, { key: ofReader, owner: owner!, until: at + Number(args.at(-1)) }, at);
      return true;
    }
    if (!key.startsWith(this.keyPrefix)) return false;
    if (name === 'hset' && args[0] === 'mode') {
      if (args[2] !== undefined) this.entered(key, args[2], at);
      return true;
    }
    const owners = this.keys.get(key);
    if (!owners && this.writer?.key !== key) return false;
    if (name === 'pexpire') this.armed(key, at, at + Number(args[0]), tokens);
    else if (name === 'hdel') this.takenOff(key, args[0]!, at);
    else if (name === 'del' && owners) this.gone(key, owners, forces, at);
    return true;
  }

  allLost(at: number): void {
    for (const key of this.keys.keys()) this.deleted(key, at);
  }

  /** The key was deleted. */
  deleted(key: string, at: number): void {
    for (const owner of [...(this.keys.get(key)?.keys() ?? [])]) this.ended(key, owner, 'lost', at);
  }

  /** The server's clock went forward, or back: all leases end so much sooner, or later. */
  clockJumped(ms: number, at: number): void {
    for (const owners of this.keys.values())
      for (const part of owners.values()) part.until = Math.max(at, part.until - ms);
    this.settle(at);
  }

  /** Writes down what has run out by now. */
  settle(now: number): void {
    for (const [key, owners] of this.keys)
      for (const [owner, { until }] of [...owners]) if (until <= now) this.ended(key, owner, 'expired', now);
  }

  private ofReader(name: string, entering: Entering, at: number): void {
    const { key, owner, until } = entering;
    const part = this.keys.get(key)?.get(owner);
    if (name === 'set') this.reader = entering;
    else if (name === 'del') this.ended(key, owner, 'released', at);
    else if (name === 'pexpire' && part?.mode === 'read') {
      part.until = until;
      this.write({ type: 'armed', at, key, owner, until });
    }
  }

  private entered(key: string, field: string, at: number): void {
    if (WRITER.test(field)) {
      this.writer = { key, owner: field.replace(WRITER, '') };
    } else if (this.reader?.key === key && this.reader.owner === field) {
      const { owner, until } = this.reader;
      this.has(key, owner, { mode: 'read', until }, at);
    }
  }

  /** A writer that reads on is in the hash as a reader before its other field goes. */
  private takenOff(key: string, field: string, at: number): void {
    const owner = field.replace(WRITER, '');
    const mode = WRITER.test(field) ? 'write' : 'read';
    if (this.keys.get(key)?.get(owner)?.mode === mode) this.ended(key, owner, 'released', at);
  }

  /** A hash has its time to live: that of whoever writes; what readers have is not told by it. */
  private armed(key: string, at: number, until: number, tokens: Tokens): void {
    const writer = [...(this.keys.get(key) ?? [])].find(([, { mode }]) => mode === 'write');
    const owner = this.writer?.key === key ? this.writer.owner : writer?.[0];
    if (owner === undefined) return;
    if (tokens || this.writer) {
      this.writer = undefined;
      this.has(key, owner, { mode: 'write', until }, at, tokens);
    } else {
      writer![1].until = until;
      this.write({ type: 'armed', at, key, owner, until });
    }
  }

  private has(key: string, owner: string, part: Part, at: number, tokens?: Tokens): void {
    this.settle(at);
    this.keys.set(key, (this.keys.get(key) ?? new Map<string, Part>()).set(owner, part));
    this.write({ type: 'hold', at, key, owner, ...tokens, ...part });
  }

  private gone(key: string, owners: ReadonlyMap<string, Part>, forces: boolean, at: number): void {
    this.settle(at);
    const until = Math.max(at, ...[...owners.values()].map((part) => part.until));
    if (forces) this.write({ type: 'unprotected', at, key, until, why: 'forced open' });
    for (const owner of [...owners.keys()]) this.ended(key, owner, forces ? 'forced' : 'released', at);
  }

  private ended(key: string, owner: string, how: End, at: number): void {
    const owners = this.keys.get(key);
    const part = owners?.get(owner);
    if (!owners || !part) return;
    owners.delete(owner);
    if (owners.size === 0) this.keys.delete(key);
    const expired = part.until <= at;
    this.write({ type: 'free', at: expired ? part.until : at, key, owner, how: expired ? 'expired' : how });
  }
}
