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

interface Permit {
  /** When it ends on the server's clock, as the server has written it down. */
  readonly score: number;
  /** The same on the clock of the history, as far as it is known how the server's is set. */
  until: number;
}

/** The server's clock is known to a few ms only: whether a permit that ends so soon is over by now is not known. */
const UNSURE_MS = 20;

/**
 * The same as `HoldWatch` for permits: works out from the sorted sets who had one, and since when. A permit ends at
 * its score, on the server's clock, and at the latest when a script takes it out of the set for that.
 */
export class PermitWatch {
  /** For each key who has a permit. */
  private readonly keys = new Map<string, Map<string, Permit>>();

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
        this.has(key, digitsOf(args[1]!), at, {
          score: Number(args[0]),
          until: at + Number(args[0]) - serverMs,
        });
        break;
      case 'zremrangebyscore':
        this.takenOut(key, Number(args[0]), Number(args[1]), at);
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
    for (const key of this.keys.keys()) this.deleted(key, at);
  }

  /** The key was deleted. */
  deleted(key: string, at: number): void {
    for (const owner of [...(this.keys.get(key)?.keys() ?? [])]) this.ended(key, owner, 'lost', at);
  }

  /**
   * The server's clock went forward, or back. What was over before does not come back: a set whose last permit has
   * ended is gone, which no monitor tells. One that Redis still has is seen again when anything is done with it.
   */
  clockJumped(ms: number, at: number): void {
    for (const [key, owners] of this.keys) {
      for (const [owner, { until }] of [...owners]) {
        if (until <= at + UNSURE_MS) this.ended(key, owner, 'expired', at);
      }
    }
    for (const owners of this.keys.values()) {
      for (const permit of owners.values()) permit.until = Math.max(at, permit.until - ms);
    }
    this.settle(at);
  }

  /** Writes down what has run out by now. */
  settle(now: number): void {
    for (const [key, owners] of this.keys) {
      for (const [owner, { until }] of [...owners]) if (until <= now) this.ended(key, owner, 'expired', now);
    }
  }

  private has(key: string, owner: string, at: number, permit: Permit): void {
    this.settle(at);
    const owners = this.keys.get(key) ?? new Map<string, Permit>();
    const type = owners.has(owner) ? 'armed' : 'hold';
    this.keys.set(key, owners.set(owner, permit));
    this.write({ type, at, key, owner, until: permit.until });
  }

  /**
   * The server's own word for which permits are over. What it did before its clock was set may be heard afterwards:
   * those whose ends are moved by then are over all the same.
   */
  private takenOut(key: string, min: number, max: number, at: number): void {
    for (const [owner, { score }] of [...(this.keys.get(key) ?? [])]) {
      if (min <= score && score <= max) this.ended(key, owner, 'expired', at);
    }
  }

  private forced(key: string, at: number): void {
    const owners = this.keys.get(key) ?? new Map<string, Permit>();
    const until = Math.max(at, ...[...owners.values()].map((permit) => permit.until));
    this.write({ type: 'unprotected', at, key, until, why: 'forced open' });
    for (const owner of [...owners.keys()]) this.ended(key, owner, 'forced', at);
  }

  private ended(key: string, owner: string, how: End, at: number): void {
    const permit = this.keys.get(key)?.get(owner);
    if (!permit) return;
    this.keys.get(key)!.delete(owner);
    const { until } = permit;
    const expired = until <= at;
    this.write({ type: 'free', at: expired ? until : at, key, owner, how: expired ? 'expired' : how });
  }
}
