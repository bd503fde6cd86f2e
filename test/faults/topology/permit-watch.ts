import type { HistoryEvent } from '../../checker/history.js';
import type { MonitoredCommand } from './redis-monitor.js';

const SHORT: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, a: 7, b: 8 };

/** The digits of a name of 16 bytes, as MONITOR writes them; quotes and backslashes are as they were already. */
const digitsOf = (word: string): string => {
  let digits = '';
  for (const [, hex, short, plain] of word.matchAll(/\\x([0-9a-f]{2})|\\([nrtab])|([\s\S])/g)) {
    const byte = short ? SHORT[short]! : plain?.charCodeAt(0);
    digits += hex ?? byte!.toString(16).padStart(2, '0');
  }
  return digits;
};

type End = Extract<HistoryEvent, { type: 'free' }>['how'];

/**
 * The same as `HoldWatch` for permits: works out from the sorted sets who had one, and since when. A permit ends at
 * its score, on the server's clock.
 */
export class PermitWatch {
  /** For each key who has a permit, and until when on the clock of the history. */
  private readonly keys = new Map<string, Map<string, number>>();

  constructor(
    private readonly keyPrefix: string,
    private readonly write: (event: HistoryEvent) => void,
  ) {}

  /** Takes in what a script did at `at`. True when it was done to permits. */
  take({ words, serverMs }: MonitoredCommand, at: number): boolean {
    const [name = '', set = '', ...args] = words;
    const key = /^\{(.*)\}:timeout$/.exec(set)?.[1];
    if (!key?.startsWith(this.keyPrefix)) return false;
    switch (name.toLowerCase()) {
      case 'zadd':
        this.has(key, digitsOf(args[1]!), at, at + Number(args[0]) - serverMs);
        break;
      case 'zrem':
        this.ended(key, digitsOf(args[0]!), 'released', at);
        break;
      case 'del':
        this.forced(key, at);
    }
    return true;
  }

  allLost(at: number): void {
    for (const [key, owners] of this.keys)
      for (const owner of [...owners.keys()]) this.ended(key, owner, 'lost', at);
  }

  clockJumped(ms: number, at: number): void {
    for (const owners of this.keys.values()) {
      for (const [owner, until] of owners) owners.set(owner, Math.max(at, until - ms));
    }
    this.settle(at);
  }

  /** Writes down what has run out by now. */
  settle(now: number): void {
    for (const [key, owners] of this.keys) {
      for (const [owner, until] of [...owners]) if (until <= now) this.ended(key, owner, 'expired', now);
    }
  }

  private has(key: string, owner: string, at: number, until: number): void {
    this.settle(at);
    const owners = this.keys.get(key) ?? new Map<string, number>();
    const type = owners.has(owner) ? 'armed' : 'hold';
    this.keys.set(key, owners.set(owner, until));
    this.write({ type, at, key, owner, until });
  }

  private forced(key: string, at: number): void {
    const owners = this.keys.get(key) ?? new Map<string, number>();
    const until = Math.max(at, ...owners.values());
    this.write({ type: 'unprotected', at, key, until, why: 'forced open' });
    for (const owner of [...owners.keys()]) this.ended(key, owner, 'forced', at);
  }

  private ended(key: string, owner: string, how: End, at: number): void {
    const until = this.keys.get(key)?.get(owner);
    if (until === undefined) return;
    this.keys.get(key)!.delete(owner);
    const expired = until <= at;
    this.write({ type: 'free', at: expired ? until : at, key, owner, how: expired ? 'expired' : how });
  }
}
