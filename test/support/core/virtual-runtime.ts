import type { Runtime } from '../../../lib/core/util/runtime.js';

interface Timer {
  readonly dueAt: number;
  readonly action: () => void;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets everything that needs no more time, and no store, go as far as it can. It may leave work to the next turn. */
export const settled = async (): Promise<void> => {
  await turn();
  await turn();
};

/** Clock, timers and ids in the hands of the test. Nothing happens until time is made to pass. */
export class VirtualRuntime implements Runtime {
  private readonly timers = new Set<Timer>();
  private clock: number;
  private ids = 0;
  /** How many timers were ever set. */
  timersSet = 0;

  constructor(startAt = 1_000) {
    this.clock = startAt;
  }

  now(): number {
    return this.clock;
  }

  setTimer(action: () => void, ms: number): unknown {
    const timer = { dueAt: this.clock + Math.max(0, ms), action };
    this.timers.add(timer);
    this.timersSet += 1;
    return timer;
  }

  clearTimer(timer: unknown): void {
    this.timers.delete(timer as Timer);
  }

  soon(action: () => void): void {
    setImmediate(action);
  }

  newId(): string {
    return `id-${(this.ids += 1)}`;
  }

  /** The middle: pauses with jitter are as long as without. */
  random(): number {
    return 0.5;
  }

  /** When the timers that are set fall due, soonest first. */
  get due(): readonly number[] {
    return [...this.timers].map(({ dueAt }) => dueAt).sort((a, b) => a - b);
  }

  /** Lets time pass; timers fire in their order, each at its own time. */
  async pass(ms: number): Promise<void> {
    const until = this.clock + ms;
    for (;;) {
      await settled();
      const next = [...this.timers].sort((a, b) => a.dueAt - b.dueAt)[0];
      if (!next || next.dueAt > until) break;
      this.timers.delete(next);
      this.clock = Math.max(this.clock, next.dueAt);
      next.action();
    }
    this.clock = until;
    await settled();
  }

  /** Time passes, but the process stands still: what falls due meanwhile fires late, and all at once. */
  async freeze(ms: number): Promise<void> {
    this.clock += ms;
    await this.pass(0);
  }

  /** Time passes without any timer noticing, until the next `pass`. */
  jump(ms: number): void {
    this.clock += ms;
  }
}
