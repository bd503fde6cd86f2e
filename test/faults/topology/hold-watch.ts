import type { HistoryEvent } from '../../checker/history.js';
import { EXCLUSIVE_FORCE_UNLOCK } from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import { SCRIPTS } from '../catalogue/scripts.js';
import { PermitWatch } from './permit-watch.js';
import type { MonitoredCommand } from './redis-monitor.js';

/** A server that has forgotten the script is sent all of it; a monitor writes a line break as two letters. */
const FORCING: readonly string[] = [
  ...SCRIPTS.forceUnlock,
  EXCLUSIVE_FORCE_UNLOCK.replaceAll('\n', String.raw`\n`),
];

const FENCE_KEY = 'nest_redis_lock_fence:';

interface Held {
  readonly owner: string;
  expiresAt: number;
}

/** How many tokens each acquire of a call of a script asks for: of the acquire script, or of a batch. */
const blocksOf = ([name, , count, ...rest]: readonly string[]): number[] => {
  if (!/^eval/i.test(name!)) return [];
  const [letters = '', ...args] = rest.slice(Number(count));
  // Anything else begins with an owner, which has a number in it.
  if (!/^[ar]+$/.test(letters)) return count === '2' ? [Number(args[1])] : [];
  return [...letters].flatMap((letter, i) => (letter === 'a' ? [Number(args[3 * i + 2])] : []));
};

/** How a hold of a script ended. */
type End = Extract<HistoryEvent, { type: 'free' }>['how'];

/**
 * Works out from the commands that the server carried out who held which key, and since when, and writes it down.
 * Leases run out by the clock of the history, as the server's does.
 */
export class HoldWatch {
  private readonly holds = new Map<string, Held>();
  private readonly permits: PermitWatch;
  /** The fencing token that the script at work has stored: the last of those that it gives. */
  private token: number | undefined;
  /** How many it gives. */
  private block = 1;
  /** The same for those that are still to come in a batch. */
  private blocks: number[] = [];
  /** Whether the script at work forces keys open. */
  private forces = false;
  private unfinished: { key: string; owner: string } | undefined;

  constructor(
    private readonly keyPrefix: string,
    private readonly write: (event: HistoryEvent) => void,
  ) {
    this.permits = new PermitWatch(keyPrefix, write);
  }

  /** The keys that are held at this moment. */
  heldAt(now: number): readonly string[] {
    return [...this.holds].filter(([, { expiresAt }]) => expiresAt > now).map(([key]) => key);
  }

  /** Takes in a command that was carried out at `at`. */
  take(command: MonitoredCommand, at: number): void {
    const { inScript, words } = command;
    if (inScript && this.permits.take(command, at)) return;
    const name = words[0]!.toLowerCase();
    if (!inScript) {
      this.token = undefined;
      this.unfinished = undefined;
      this.block = 1;
      this.blocks = blocksOf(words);
      this.forces = words.some((word) => FORCING.includes(word));
      if (name === 'flushall' || name === 'flushdb') this.allLost(at);
      return;
    }
    const key = words[1] ?? '';
    const block = name === 'pttl' ? this.blocks.shift() : undefined;
    if (block !== undefined) {
      // The next acquire begins.
      this.block = block;
      this.token = undefined;
      this.unfinished = undefined;
    }
    if (name === 'set' && key.startsWith(FENCE_KEY)) this.token = Number(words[2]);
    else if (!key.startsWith(this.keyPrefix)) return;
    else if (name === 'hexists') this.unfinished = { key, owner: words[2]! };
    else if (name === 'hset') this.unfinished = { key, owner: words[2]! };
    else if (name === 'pexpire') this.armed(key, Number(words[2]), at);
    else if (name === 'del') this.freed(key, this.forces ? 'forced' : 'released', at);
  }

  /** All holds are gone. */
  allLost(at: number): void {
    this.permits.allLost(at);
    for (const key of [...this.holds.keys()]) this.freed(key, 'lost', at);
  }

  /** The server's clock went forward, or back: all leases end so much sooner, or later. */
  clockJumped(ms: number, at: number): void {
    this.permits.clockJumped(ms, at);
    for (const [key, hold] of [...this.holds]) {
      hold.expiresAt = Math.max(at, hold.expiresAt - ms);
      if (hold.expiresAt === at) this.expire(key);
    }
  }

  /** Writes down what has run out by now. */
  settle(now: number): void {
    this.permits.settle(now);
    for (const [key, { expiresAt }] of [...this.holds]) if (expiresAt <= now) this.expire(key);
  }

  private armed(key: string, ms: number, at: number): void {
    const asked = this.unfinished?.key === key ? this.unfinished.owner : undefined;
    const held = this.holds.get(key);
    if (held && held.expiresAt <= at && held.owner !== asked) this.expire(key);
    const current = this.holds.get(key);
    if (asked !== undefined && (this.token !== undefined || current?.owner !== asked)) {
      if (current && current.owner !== asked) this.freed(key, 'expired', at);
      const lastToken = this.token;
      const token = lastToken === undefined ? undefined : lastToken - this.block + 1;
      this.write({ type: 'hold', at, key, owner: asked, token, lastToken, until: at + ms });
      this.holds.set(key, { owner: asked, expiresAt: at + ms });
    } else if (current) {
      current.expiresAt = at + ms;
      this.write({ type: 'armed', at, key, owner: current.owner, until: at + ms });
    }
  }

  private expire(key: string): void {
    this.freed(key, 'expired', this.holds.get(key)!.expiresAt);
  }

  private freed(key: string, how: End, at: number): void {
    const held = this.holds.get(key);
    if (!held) return;
    this.holds.delete(key);
    const expired = held.expiresAt <= at;
    if (how === 'forced' && !expired) {
      this.write({ type: 'unprotected', at, key, until: held.expiresAt, why: 'forced open' });
    }
    this.write({
      type: 'free',
      at: expired ? held.expiresAt : at,
      key,
      owner: held.owner,
      how: expired ? 'expired' : how,
    });
  }
}
