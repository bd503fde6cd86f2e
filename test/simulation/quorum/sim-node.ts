import type { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import type { ServerTimes } from '../../../lib/stores/redis/quorum/node-store.js';
import type { Agenda } from '../engine/agenda.js';

/** 2026, so that tokens look like tokens. */
const WALL_CLOCK_START_MS = 1_790_000_000_000;

/** Whether a clock that is set so is farther off than those of servers may be. */
export const isFarOff = (aheadMs: number): boolean => Math.abs(aheadMs) > 1_000;

/** Makes what a server keeps; the library's own, or a copy with a mistake in it. */
export type MakeSpace = new (clocks: { now: () => number; wallClockMicros: () => number }) => MemorySpace;

/** One server of a quorum. */
export class SimNode {
  space!: MemorySpace;
  isUp = true;
  /** Number of commits so far. */
  commits = 0;
  private startedAt = -3_600_000;
  /** By how much leases end earlier, since the wall clock was set ahead. */
  private leasesAheadMs = 0;
  private readonly onDown = new Set<() => void>();

  constructor(
    readonly name: string,
    private readonly agenda: Agenda,
    /** How fast the clock runs that counts leases. The other one is set right now and then, from outside. */
    private readonly rate: number,
    /** How far its wall clock is ahead, in ms. */
    private aheadMs: number,
    private readonly makeSpace: MakeSpace,
  ) {
    this.forget();
  }

  get times(): ServerTimes {
    return {
      upForMs: (this.agenda.now - this.startedAt) * this.rate,
      clockMs: this.wallClockMs,
      tokensPerMs: 1_000,
    };
  }

  die(forgets: boolean): void {
    if (!this.isUp) return;
    this.isUp = false;
    if (forgets) this.forget();
    for (const notify of [...this.onDown]) notify();
  }

  comeBack(): void {
    if (this.isUp) return;
    this.isUp = true;
    this.startedAt = this.agenda.now;
  }

  /** Sets the wall clock. As in Redis leases end early when it jumps ahead; when it jumps back they do not end late. */
  setClock(aheadMs: number): void {
    this.aheadMs = aheadMs;
    if (this.isFarOff) this.leasesAheadMs = Math.max(this.leasesAheadMs, aheadMs);
  }

  /** Whether the wall clock is farther off than those of servers may be. */
  get isFarOff(): boolean {
    return isFarOff(this.aheadMs);
  }

  /** Tells of each death. */
  whenDown(notify: () => void): void {
    this.onDown.add(notify);
  }

  private get wallClockMs(): number {
    return WALL_CLOCK_START_MS + this.agenda.now + this.aheadMs;
  }

  private forget(): void {
    this.space = new this.makeSpace({
      now: () => this.agenda.now * this.rate + this.leasesAheadMs,
      wallClockMicros: () => this.wallClockMs * 1_000,
    });
  }
}
