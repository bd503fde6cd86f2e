import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockMode, LockService } from 'nest-redis-lock';
import { LockStoreError } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import type { Sections } from '../../support/java/contest.js';

type Times = Sections['times'][number];

/** Returns the sections that began before an earlier one had ended. */
export const overlapsOf = (had: readonly Pick<Sections, 'times'>[]): readonly Times[] => {
  const times = had.flatMap((one) => one.times).toSorted(([a], [b]) => a - b);
  let latestEnd = -Infinity;
  return times.filter(([beganAt, endedAt]) => {
    const overlaps = beganAt < latestEnd;
    latestEnd = Math.max(latestEnd, endedAt);
    return overlaps;
  });
};

/** Returns how many sections were on at the same time. */
export const mostAtOnce = (had: readonly Pick<Sections, 'times'>[]): number => {
  const steps = had.flatMap(({ times }) =>
    times.flatMap(([from, to]) => [[from, 1] as const, [to, -1] as const]),
  );
  let [inside, most] = [0, 0];
  // An end comes before a begin at the same time.
  for (const [, step] of steps.toSorted(([a, x], [b, y]) => a - b || x - y)) {
    inside += step;
    most = Math.max(most, inside);
  }
  return most;
};

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** The value of a counter in a file. A missing one is 0. */
export const counterIn = async (file: string): Promise<number> =>
  Number(await readFile(file, 'utf8').catch(() => '0'));

interface OnCounter {
  readonly key: string | readonly string[];
  readonly file: string;
  readonly rounds: number;
  readonly mode?: LockMode;
}

/** Adds 1 to a counter `rounds` times, in steps that only mutual exclusion makes atomic. */
export const nodeCounts = async (
  locks: LockService,
  { key, file, rounds, mode }: OnCounter,
): Promise<void> => {
  for (let round = 0; round < rounds; round += 1)
    await locks.withLock(key, { mode }, async () => {
      const before = await counterIn(file);
      await sleep(1);
      await writeFile(file, String(before + 1));
    });
};

/** Reads a counter twice under the lock, `rounds` times. Resolves with how often it changed meanwhile. */
export const nodeCompares = async (locks: LockService, { key, file, rounds }: OnCounter): Promise<number> => {
  let changed = 0;
  for (let round = 0; round < rounds; round += 1)
    await locks.withLock(key, { mode: 'read' }, async () => {
      const before = await counterIn(file);
      await sleep(1);
      if ((await counterIn(file)) !== before) changed += 1;
    });
  return changed;
};

/** Waits for a lock for up to `waitMs`, then works for `workMs` and releases. */
export const nodeWorks = async (
  locks: LockService,
  { key, waitMs, workMs }: { readonly key: string; readonly waitMs: number; readonly workMs: number },
): Promise<'gave up' | 'released' | 'lost'> => {
  const lease = await locks.tryAcquire(key, { waitMs });
  if (!lease) return 'gave up';
  await sleep(workMs);
  return lease.release();
};

/** The sections of one caller of Node. */
export class NodeContender {
  readonly times: Times[] = [];
  /** How often the store failed. */
  failures = 0;

  /** @param permits number of permits of the key; undefined for a lock */
  constructor(
    private readonly locks: LockService,
    private readonly permits?: number,
  ) {}

  /** Acquires, works and releases, until it has done so `rounds` times more. After a failure of the store it tries again. */
  async contend({ key, rounds, workMs }: { key: string; rounds: number; workMs: number }): Promise<void> {
    const aim = this.times.length + rounds;
    await until(
      async () => {
        try {
          while (this.times.length < aim) await this.section(key, workMs);
          return true;
        } catch (error) {
          if (!(error instanceof LockStoreError)) throw error;
          this.failures += 1;
          return false;
        }
      },
      { what: `a caller of Node has ${rounds} sections`, timeoutMs: 60_000 },
    );
  }

  private section(key: string, workMs: number): Promise<void> {
    const { locks, permits } = this;
    const section = async (): Promise<void> => {
      // Java tells fractions of a ms. Rounded inwards, what overlaps has overlapped.
      const beganAt = Date.now() + 1;
      await sleep(workMs);
      this.times.push([beganAt, Math.max(beganAt, Date.now())]);
    };
    return permits === undefined
      ? locks.withLock(key, section)
      : locks.permits(key, { permits }).withPermit(section);
  }
}
