import type { CountDownLatch } from '../../lib/core/objects/count-down-latch.js';
import type { Semaphore } from '../../lib/core/objects/semaphore.js';
import { errorSeen, type CalledOffEvent, type UsedEvent, type UsesEvent } from './history.js';

type Own<T> = T extends unknown ? Omit<T, 'at' | 'process'> : never;

/** A caller that goes away while it waits. */
export interface Leaving {
  readonly signal: AbortSignal | undefined;
  close(): void;
}

/** The world of whoever uses semaphores and latches: a process of the simulation, or a worker of the laboratory. */
export interface ObjectSurroundings {
  semaphore(key: string): Semaphore;
  countDownLatch(key: string): CountDownLatch;
  finalKey(key: string): string;
  record(event: Own<UsesEvent | CalledOffEvent | UsedEvent>): void;
  sleep(ms: number): Promise<void>;
  /** Undefined: it stays. */
  leaveAfter(ms: number | undefined, notify: () => void): Leaving;
}

/** To work with permits of a semaphore. */
export interface PermitsTask {
  readonly key: string;
  /** How many the semaphore has. */
  readonly of: number;
  readonly permits: number;
  readonly waitMs: number;
  readonly abortAfterMs?: number | undefined;
  readonly workMs: number;
}

/** To meet others at a latch. */
export interface MeetingTask {
  readonly key: string;
  /** How many are to come. */
  readonly count: number;
  readonly waitMs: number;
  readonly abortAfterMs?: number | undefined;
}

/** How often permits are given back that the store has surely refused, and after how long, in ms. */
const TRIES = 3;
const RETRY_MS = 80;

const isUnknown = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'outcome' in error && error.outcome === 'unknown';

/** Uses semaphores and latches as callers do, and has written down what comes of it. */
export class ObjectUser {
  private uses = 0;

  constructor(
    private readonly name: string,
    private readonly around: ObjectSurroundings,
  ) {}

  /** Takes permits, works, and gives them back; unless nobody can tell whether that has been done. */
  async workWithPermits({ key, of, permits, waitMs, abortAfterMs, workMs }: PermitsTask): Promise<void> {
    const semaphore = this.around.semaphore(key);
    const about = { object: 'semaphore', key, amount: permits } as const;
    await this.use({ ...about, what: 'set', amount: of }, () => semaphore.trySetPermits(of));
    const taken = await this.use(
      { ...about, what: 'take', waitMs },
      (signal) => semaphore.acquire(permits, { waitMs, signal }).then(() => true),
      abortAfterMs,
    );
    if (taken !== 'done') return;
    await this.around.sleep(workMs);
    for (let i = 0; i < TRIES; i++) {
      const given = await this.use({ ...about, what: 'add' }, () =>
        semaphore.release(permits).then(() => true),
      );
      if (given !== 'refused') break;
      await this.around.sleep(RETRY_MS);
    }
    await this.look('semaphore', key);
  }

  /** Says that it is there, and waits for the others. */
  async meet({ key, count, waitMs, abortAfterMs }: MeetingTask): Promise<void> {
    const latch = this.around.countDownLatch(key);
    const about = { object: 'latch', key, amount: 1 } as const;
    await this.use({ ...about, what: 'set', amount: count }, () => latch.trySetCount(count));
    await this.use({ ...about, what: 'countDown' }, () => latch.countDown().then(() => true));
    await this.look('latch', key);
    await this.use(
      { ...about, what: 'wait', waitMs },
      (signal) => latch.wait({ waitMs, signal }).then(() => true),
      abortAfterMs,
    );
  }

  async look(object: UsesEvent['object'], key: string): Promise<void> {
    await this.use({ object, key, what: 'look', amount: 0 }, () =>
      object === 'latch'
        ? this.around.countDownLatch(key).getCount()
        : this.around.semaphore(key).availablePermits(),
    );
  }

  private async use(
    { key, ...about }: Omit<Own<UsesEvent>, 'type' | 'use'>,
    request: (signal: AbortSignal | undefined) => Promise<boolean | number>,
    abortAfterMs?: number,
  ): Promise<'done' | 'refused' | 'unknown'> {
    const { around } = this;
    const use = `${this.name}.u${++this.uses}`;
    around.record({ type: 'uses', use, key: around.finalKey(key), ...about });
    const leaving = around.leaveAfter(abortAfterMs, () => around.record({ type: 'called off', use }));
    try {
      const result = await request(leaving.signal);
      around.record({ type: 'used', use, result });
      return result === false ? 'refused' : 'done';
    } catch (error) {
      const unknown = isUnknown(error);
      around.record({ type: 'used', use, error: errorSeen(error), ...(unknown && { unknown }) });
      return unknown ? 'unknown' : 'refused';
    } finally {
      leaving.close();
    }
  }
}
