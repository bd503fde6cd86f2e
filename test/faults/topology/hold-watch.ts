import type { HistoryEvent } from '../../checker/history.js';
import { EXCLUSIVE_FORCING } from '../../../lib/stores/redis/kinds/exclusive/redis-exclusive.js';
import { FAIR_FORCING } from '../../../lib/stores/redis/kinds/fair/redis-fair.js';
import { PERMIT_FORCING } from '../../../lib/stores/redis/kinds/permit/redis-permit.js';
import { READ_WRITE_FORCING } from '../../../lib/stores/redis/kinds/read-write/redis-read-write.js';
import { FORCE_UNLOCK } from '../../../lib/stores/redis/kinds/any-kind.js';
import { batchRuns } from '../../support/redis/batch-runs.js';
import { PermitWatch } from './permit-watch.js';
import { ReadWriteWatch, type Tokens } from './read-write-watch.js';
import type { MonitoredCommand } from './redis-monitor.js';

/** The scripts that force keys open: of the library, or of a copy with a mistake. */
export interface ForcingScripts {
  readonly EXCLUSIVE_FORCING: typeof EXCLUSIVE_FORCING;
  readonly FAIR_FORCING: typeof FAIR_FORCING;
  readonly READ_WRITE_FORCING: typeof READ_WRITE_FORCING;
  readonly PERMIT_FORCING: typeof PERMIT_FORCING;
  readonly FORCE_UNLOCK: typeof FORCE_UNLOCK;
}

/** The scripts of the library as it is. */
export const FORCING: ForcingScripts = {
  EXCLUSIVE_FORCING,
  FAIR_FORCING,
  READ_WRITE_FORCING,
  PERMIT_FORCING,
  FORCE_UNLOCK,
};

/** How they are recognized: by the hash, or by the script itself, in which a monitor writes a line break as two letters. */
const namesOf = (forcing: ForcingScripts): ReadonlySet<string> => {
  const { EXCLUSIVE_FORCING: exclusive, FAIR_FORCING: fair, READ_WRITE_FORCING: readWrite } = forcing;
  const scripts = [...exclusive, fair, readWrite, forcing.PERMIT_FORCING].map(({ script }) => script);
  return new Set(
    [...scripts, forcing.FORCE_UNLOCK].flatMap(({ sha, source }) => [
      sha,
      source.replaceAll('\n', String.raw`\n`),
    ]),
  );
};

const FENCE_KEY = 'nest_redis_lock:fence:';

const QUEUE_KEY = 'nest_redis_lock:queue:';
/** A place as it is written into a line: how many tokens are reserved with its grant, and for whom. */
const ENTRY = /^1 \d+ \d+ \d+ (\d+) \d (\S+)$/;

interface Held {
  readonly owner: string;
  expiresAt: number;
}

/** A hold that the script at work has given: it may still be put back, and its tokens may still be to come. */
interface Given {
  readonly at: number;
  readonly key: string;
  readonly owner: string;
  readonly tokens: number;
  lastToken: number | undefined;
  until: number;
}

/** Parts of a batch that acquire a key. */
const ACQUIRING = ['a', 'A'];

/** How many keys the scripts have that take a key, run by themselves. */
const TAKING: readonly string[] = ['2', '3', '4'];

/** How many tokens each acquire of a call of a script asks for: of an acquire script, or of a batch. */
const blocksOf = ([name, , count, ...rest]: readonly string[]): number[] => {
  if (!/^eval/i.test(name!)) return [];
  const keys = rest.slice(0, Number(count));
  const args = rest.slice(keys.length);
  // To write a read-write lock: the last of its keys is where tokens come from.
  if (keys[1]?.includes(':rwlock_timeout:'))
    return keys[3]?.startsWith(`${FENCE_KEY}{`) ? [Number(args[5])] : [];
  // Anything else begins with an owner, which has a number in it.
  const runs = batchRuns(args);
  if (!runs) return TAKING.includes(count!) ? [Number(args[2])] : [];
  return runs.flatMap((run) => (ACQUIRING.includes(run.letter) ? [Number(run.args[2])] : []));
};

/** How a hold of a script ended. */
type End = Extract<HistoryEvent, { type: 'free' }>['how'];

/**
 * Works out from the commands that the server carried out who held which key, and since when, and writes it down.
 * Leases run out by the clock of the history, as the server's does.
 */
export class HoldWatch {
  private readonly holds = new Map<string, Held>();
  private readonly forcing: ReadonlySet<string>;
  private readonly permits: PermitWatch;
  private readonly readWrite: ReadWriteWatch;
  /** The fencing token that the script at work has stored: the last of those that it gives. */
  private token: number | undefined;
  /** How many it gives. */
  private block = 1;
  /** The same for those that are still to come in a batch. */
  private blocks: number[] = [];
  /** Whether the script at work forces keys open. */
  private forces = false;
  private unfinished: { key: string; owner: string } | undefined;
  /** The key that the acquire at work has asked for beside its line: it asks for it by itself next, if it is not free. */
  private begun: string | undefined;
  private given: Given | undefined;
  /** The hold that it armed again for the owner that asked: a token for that may still be to come. */
  private again: Omit<Given, 'lastToken'> | undefined;
  /** How many tokens are reserved for who stands in line, by owner; and the line that is in. */
  private readonly entries = new Map<string, { readonly queue: string; readonly tokens: number }>();

  constructor(
    private readonly keyPrefix: string,
    private readonly write: (event: HistoryEvent) => void,
    forcing = FORCING,
  ) {
    this.forcing = namesOf(forcing);
    this.permits = new PermitWatch(keyPrefix, write);
    this.readWrite = new ReadWriteWatch(keyPrefix, write);
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
      this.finish();
      this.readWrite.begin();
      this.token = undefined;
      this.unfinished = undefined;
      this.block = 1;
      this.blocks = blocksOf(words);
      this.forces = words.some((word) => this.forcing.has(word));
      if (name === 'flushall' || name === 'flushdb') this.allLost(at);
      return;
    }
    const key = words[1] ?? '';
    if (key.startsWith(QUEUE_KEY)) return this.inQueue(name, words);
    const isHold = key.startsWith(this.keyPrefix);
    const withQueue = isHold && name === 'exists' && words.length === 3;
    if (withQueue || (isHold && (name === 'pttl' || name === 'hexists' || name === 'hlen'))) {
      // What a script does first with a key.
      this.finish();
      this.token = undefined;
    }
    const begins = withQueue || (isHold && name === 'pttl' && this.begun !== key);
    this.begun = withQueue ? key : undefined;
    const block = begins ? this.blocks.shift() : undefined;
    if (block !== undefined) {
      // The next acquire begins.
      this.block = block;
      this.unfinished = undefined;
    }
    if (name === 'set' && key.startsWith(FENCE_KEY)) this.stored(Number(words[2]));
    else if (this.readWrite.take(command, at, this.tokens(), this.forces) || !isHold) return;
    // Fair locks look whether the key is a read-write lock.
    else if (name === 'hexists' && words[2] !== 'mode') this.unfinished = { key, owner: words[2]! };
    else if (name === 'hset') this.unfinished = { key, owner: words[2]! };
    else if (name === 'pexpire') this.armed(key, Number(words[2]), at);
    else if (name === 'del') this.freed(key, this.forces ? 'forced' : 'released', at);
    // The release of somebody whose hold is over takes nothing away.
    else if (name === 'hdel' && this.holds.get(key)?.owner === words[2]) this.freed(key, 'released', at);
  }

  /** All holds are gone. */
  allLost(at: number): void {
    this.finish();
    this.entries.clear();
    this.permits.allLost(at);
    this.readWrite.allLost(at);
    for (const key of [...this.holds.keys()]) this.freed(key, 'lost', at);
  }

  /** The key was deleted, with all that was held there. */
  deleted(key: string, at: number): void {
    this.settle(at);
    this.permits.deleted(key, at);
    this.readWrite.deleted(key, at);
    this.freed(key, 'lost', at);
  }

  /** The server's clock went forward, or back: all leases end so much sooner, or later. */
  clockJumped(ms: number, at: number): void {
    // A clock that goes back brings back no lease that is over.
    this.settle(at);
    this.permits.clockJumped(ms, at);
    this.readWrite.clockJumped(ms, at);
    for (const [key, hold] of [...this.holds]) {
      hold.expiresAt = Math.max(at, hold.expiresAt - ms);
      if (hold.expiresAt === at) this.expire(key);
    }
  }

  /** Writes down what has run out by now. */
  settle(now: number): void {
    this.finish();
    this.permits.settle(now);
    this.readWrite.settle(now);
    for (const [key, { expiresAt }] of [...this.holds]) if (expiresAt <= now) this.expire(key);
  }

  private armed(key: string, ms: number, at: number): void {
    const requested = this.unfinished?.key === key ? this.unfinished.owner : undefined;
    const held = this.holds.get(key);
    if (held && held.expiresAt <= at && held.owner !== requested) this.expire(key);
    const current = this.holds.get(key);
    if (this.given?.key === key) this.given.until = at + ms;
    else if (requested !== undefined && (this.token !== undefined || current?.owner !== requested)) {
      if (current && current.owner !== requested) this.freed(key, 'expired', at);
      // Who is granted while it stands in line gets as many tokens as it asked for when it came.
      const tokens = this.entries.get(requested)?.tokens ?? (this.block || 1);
      this.given = { at, key, owner: requested, tokens, lastToken: this.token, until: at + ms };
    } else if (current) {
      current.expiresAt = at + ms;
      this.write({ type: 'armed', at, key, owner: current.owner, until: at + ms });
      if (current.owner === requested)
        this.again = { at, key, owner: requested, tokens: this.block || 1, until: at + ms };
    }
  }

  /** What a script does with a line. */
  private inQueue(name: string, [, queue = '', ...words]: readonly string[]): void {
    if (name === 'del') {
      for (const [owner, entry] of this.entries) if (entry.queue === queue) this.entries.delete(owner);
    } else if (name === 'hdel') {
      // A grant takes off its place before it is certain that somebody hears of it.
      for (const word of words) if (word.startsWith('@')) this.entries.delete(word.slice(1));
    } else if (name === 'hset') {
      const [, tokens, owner] = words.map((word) => ENTRY.exec(word)).find((found) => found !== null) ?? [];
      if (owner !== undefined) this.entries.set(owner, { queue, tokens: Number(tokens) });
    }
  }

  private tokens(): Tokens {
    const { token: lastToken, block } = this;
    return lastToken === undefined ? undefined : { token: lastToken - (block || 1) + 1, lastToken };
  }

  private stored(token: number): void {
    this.token = token;
    if (this.given) this.given.lastToken = token;
    else if (this.again) this.given = { ...this.again, lastToken: token };
    this.again = undefined;
  }

  /** The script at work, or its part in a batch, is over: what it has given stays. */
  private finish(): void {
    const { given } = this;
    this.given = undefined;
    this.again = undefined;
    if (!given) return;
    const { at, key, owner, lastToken, until, tokens } = given;
    const token = lastToken === undefined ? undefined : lastToken - tokens + 1;
    this.write({ type: 'hold', at, key, owner, token, lastToken, until });
    this.holds.set(key, { owner, expiresAt: until });
  }

  private expire(key: string): void {
    this.freed(key, 'expired', this.holds.get(key)!.expiresAt);
  }

  private freed(key: string, how: End, at: number): void {
    // Nobody heard of what it was given: it never had it.
    if (this.given?.key === key) {
      this.given = undefined;
      this.token = undefined;
      return;
    }
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
