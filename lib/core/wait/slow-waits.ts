import { CompactingMap } from '../util/compacting.js';
import { AT_ONCE } from '../util/portions.js';
import type { Runtime } from '../util/runtime.js';
import type { Blocking, HeldAs } from '../seam/reply.js';
import type { Wait } from './wait.js';

/** Minimum pause between two reports, in ms: the callers of a crowd become slow one after the other. */
const PAUSE_MS = 100;

/** What the local queue of a caller knows of its key. */
interface KeyState {
  readonly finalKey: string;
  readonly blocking: Blocking | undefined;
}

/** Where a caller waits. */
interface Place {
  readonly queue: KeyState;
  /** How many callers are before it. */
  ahead(): number | undefined;
}

/** A caller that has waited for long. */
export interface SlowWait extends Pick<KeyState, 'finalKey'>, Pick<Wait, 'key' | 'kind' | 'label'> {
  readonly heldAs: HeldAs | undefined;
  readonly waitersAhead: number | undefined;
  readonly waitedMs: number;
}

export interface SlowWaitsHost {
  readonly runtime: Runtime;
  /** Length of a slow wait, in ms; `Infinity`: no wait is slow. */
  readonly slowWaitMs: number;
  /** Callers have waited for so long. Each key of a call is reported once. */
  readonly report: (slow: readonly SlowWait[]) => void;
}

/** Notices callers that wait for long, with one timer. Only a caller that has to wait costs anything. */
export class SlowWaits {
  /** Waits that are not slow yet. */
  private readonly waits = new CompactingMap<Wait, Place>();
  private timer: unknown;
  private dueAt = Infinity;

  constructor(private readonly host: SlowWaitsHost) {}

  /** A caller begins to wait, or goes on: its call began at `startedAt` of the wait. */
  begin(wait: Wait, place: Place): void {
    const { slowWaitMs } = this.host;
    if (wait.isSlow || wait.waitMs <= slowWaitMs) return;
    this.waits.set(wait, place);
    this.arm(wait.startedAt + slowWaitMs);
  }

  end(wait: Wait): void {
    if (!this.waits.delete(wait) || this.waits.size > 0) return;
    this.host.runtime.clearTimer(this.timer);
    this.dueAt = Infinity;
  }

  private arm(dueAt: number): void {
    if (dueAt >= this.dueAt) return;
    const { runtime } = this.host;
    runtime.clearTimer(this.timer);
    this.dueAt = dueAt;
    const delayMs = Math.max(0, Math.ceil(dueAt - runtime.now()));
    this.timer = runtime.setTimer(() => this.check(), delayMs, true);
  }

  private check(): void {
    const { runtime, slowWaitMs } = this.host;
    this.dueAt = Infinity;
    const now = runtime.now();
    let nextAt = Infinity;
    const slow: SlowWait[] = [];
    for (const wait of [...this.waits.keys()]) {
      const { key, kind, label, startedAt } = wait;
      const slowAt = startedAt + slowWaitMs;
      // The rest of a crowd follows when the event loop has turned.
      if (slowAt > now || slow.length === AT_ONCE) nextAt = Math.min(nextAt, slowAt);
      else {
        const waitedMs = Math.round(now - startedAt);
        const place = this.waits.get(wait)!;
        const { finalKey, blocking } = place.queue;
        slow.push({
          key,
          finalKey,
          kind,
          label,
          waitedMs,
          waitersAhead: place.ahead(),
          heldAs: blocking?.heldAs,
        });
        this.waits.delete(wait);
        wait.isSlow = true;
      }
    }
    // A timer may fire a moment early: then nothing was reported, and there is no pause.
    const pauseMs = slow.length > 0 && nextAt > now ? PAUSE_MS : 0;
    if (slow.length > 0) this.host.report(slow);
    // Behind the report: a timer that is due by then would fire before the event loop turns.
    if (nextAt < Infinity) this.arm(Math.max(nextAt, now + pauseMs));
  }
}
