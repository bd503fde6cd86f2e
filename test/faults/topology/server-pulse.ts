import type { Redis } from 'ioredis';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { labNow } from '../history/lab-clock.js';

const EVERY_MS = 20;
/** A server whose answer takes longer than this is too busy, or too starved, to blame the lock for being slow. */
const SLOW_MS = 25;
/** Two readings that are further apart than this are those of a clock that was set. */
const JUMP_MS = 200;
/** A reading is the vaguer the longer it took. An old one that was better is kept until it is so much older. */
const AGING_PER_READING = 1.03;
/** How many settings of the clock are remembered: what comes in now may have been done before the last one. */
const REMEMBERED = 3;

/** Asks the server for its time again and again: to know how quick it is, and how its clock is set. */
export class ServerPulse {
  private readonly client: Redis;
  /** How far the server's clock is ahead of the laboratory's, newest first. */
  private readings: { aheadMs: number; vaguenessMs: number }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private closed = false;
  private lastAt = 0;
  private jumps = 0;

  constructor(
    server: RedisServer,
    private readonly onSlow: (from: number, until: number) => void,
  ) {
    this.client = server.adminClient({ enableOfflineQueue: false, retryStrategy: () => 10 });
    this.next();
  }

  /** Whether the server's clock is known. */
  get isKnown(): boolean {
    return this.readings.length > 0;
  }

  /** When a moment of the server's clock was, of something that has become known just now. Never goes back. */
  momentOf(serverMs: number): number {
    const now = labNow();
    const moments = this.readings.map(({ aheadMs }) => serverMs - aheadMs);
    const distance = (moment: number): number => Math.abs(moment - now);
    const likely = moments.reduce((best, one) => (distance(one) < distance(best) ? one : best), Infinity);
    this.lastAt = Math.max(this.lastAt, Math.min(likely, now));
    return Math.round(this.lastAt * 1_000) / 1_000;
  }

  /** The server's clock was set by so much: that is known better than its next answer could tell. */
  jumped(ms: number): void {
    this.jumps++;
    const [newest] = this.readings;
    if (newest) this.remember({ ...newest, aheadMs: newest.aheadMs + ms });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.client.disconnect();
  }

  private next(): void {
    if (!this.closed) this.timer = setTimeout(() => void this.request(), EVERY_MS);
  }

  private async request(): Promise<void> {
    const from = labNow();
    const { jumps } = this;
    try {
      const [seconds, micros] = await this.client.time();
      const until = labNow();
      if (until - from > SLOW_MS) this.onSlow(from, until);
      // Of an answer that was under way when the clock was set nobody knows which clock it is of.
      if (jumps === this.jumps) this.read(Number(seconds) * 1_000 + Number(micros) / 1_000, from, until);
    } catch {
      // It is down, which is known; or it was killed while it answered.
    } finally {
      this.next();
    }
  }

  private read(serverMs: number, from: number, until: number): void {
    const reading = { aheadMs: serverMs - (from + until) / 2, vaguenessMs: until - from };
    const [newest] = this.readings;
    // What is off by no more than the reading is vague was not set: the server stood still.
    const farMs = JUMP_MS + reading.vaguenessMs / 2;
    if (newest === undefined || Math.abs(reading.aheadMs - newest.aheadMs) > farMs)
      return this.remember(reading);
    newest.vaguenessMs *= AGING_PER_READING;
    if (reading.vaguenessMs <= newest.vaguenessMs) this.readings[0] = reading;
  }

  private remember(reading: { aheadMs: number; vaguenessMs: number }): void {
    this.readings = [reading, ...this.readings].slice(0, REMEMBERED);
  }
}
