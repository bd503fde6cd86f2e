import type { LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';

/** What a process asks for. */
export interface OverloadPlan {
  /** Callers of free keys, each of which asks again at once when it is done. */
  readonly callers: number;
  /** Number of callers that come together, once in each lease. */
  readonly burst: number;
  /** Time between the process and the server, in ms each way. */
  readonly latencyMs: number;
  /** How long the server works at a request, in ms. */
  readonly serviceMs: number;
  /** After how long the server becomes as slow as that, in ms. Default: when the locks are held. */
  readonly slowAfterMs?: number;
  /** Whether another transaction locks the rows of a third of the held locks, for 12 s in each lease. */
  readonly locksRows?: boolean;
}

/** The time of a run, simulated or not. */
export interface Timeline {
  /** In ms. */
  readonly now: number;
  at(time: number, what: () => void): unknown;
  /** Resolves at a time, or earlier when `isOver` says so. */
  pass(until: number, isOver?: () => boolean): Promise<void>;
}

/** A process with default options, and its store. */
export interface Overloaded {
  readonly agenda: Timeline;
  /** Does something in the process. */
  readonly process: { arrive(what: () => void): void };
  readonly manager: LockManager;
  /** Called when the locks are held: from now on the server is as slow as the plan says. */
  begin?(): void;
  /** Has another transaction lock the rows of keys. */
  lockRows?(keys: readonly string[], until: number): void;
  /** Keys that are held in the store. */
  heldKeys(): readonly string[] | Promise<readonly string[]>;
}

export interface OverloadRun {
  /** Reasons of the held locks that were lost. */
  readonly lost: readonly string[];
  /** Errors that are not "taken", and that came before the end of the wait, or that do not name the overload. */
  readonly wrong: readonly string[];
  readonly events: readonly string[];
  readonly granted: number;
  readonly overloaded: number;
  /** Longest wait for a free key that was granted, in ms. */
  readonly longestMs: number;
  /** Holds that are left in the store when all callers have gone. */
  readonly left: readonly string[];
}

const HELD = 20;
const LEASES = 3;
const LOCKED_MS = 12_000;

/** Holds 20 locks over three leases, while others of the process ask for free keys. */
export const overload = async (subject: Overloaded, plan: OverloadPlan): Promise<OverloadRun> => {
  const { agenda, process, manager } = subject;
  const call = defaultCall(manager.settings);
  const { watchdogMs } = manager.settings;
  const lost: string[] = [];
  const wrong: string[] = [];
  const events: string[] = [];
  let granted = 0;
  let overloaded = 0;
  let longestMs = 0;
  let isOver = false;
  let running = 0;
  manager.on('lost', ({ key, reason }) => lost.push(`${key}: ${reason}`));
  for (const event of ['store-down', 'store-up'] as const) manager.on(event, () => events.push(event));

  const ask = async (key: string): Promise<void> => {
    const startedAt = agenda.now;
    try {
      const lease = await manager.acquire([key], call);
      granted += 1;
      longestMs = Math.max(longestMs, agenda.now - startedAt);
      await lease.release();
    } catch (error) {
      const { reason, message } = error as LockStoreError;
      // Timers round down, and may come 1 ms early.
      if (reason === 'overloaded' && agenda.now - startedAt >= call.waitMs - 2) overloaded += 1;
      else if (wrong.length < 5) wrong.push(message);
    }
  };
  const loop = async (key: string): Promise<void> => {
    running += 1;
    while (!isOver) await ask(key);
    running -= 1;
  };
  const keys = Array.from({ length: HELD }, (_, i) => `held ${i}`);
  let isHeld = false;
  process.arrive(
    () => void Promise.all(keys.map((key) => manager.acquire([key], call))).then(() => (isHeld = true)),
  );
  await agenda.pass(20_000, () => isHeld);
  subject.begin?.();
  const startedAt = agenda.now;
  process.arrive(() => {
    for (let i = 0; i < plan.callers; i++) void loop(`free ${i}`);
  });
  for (let lease = 0; lease < LEASES; lease++) {
    const at = startedAt + lease * watchdogMs;
    agenda.at(at + 5_000, () =>
      process.arrive(() => {
        for (let i = 0; i < plan.burst; i++) void ask(`burst ${lease} ${i}`);
      }),
    );
    if (!plan.locksRows) continue;
    const third = keys.filter((_, i) => i % 3 === 0);
    agenda.at(at + 8_000, () => subject.lockRows!(third, agenda.now + LOCKED_MS));
  }
  await agenda.pass(startedAt + LEASES * watchdogMs);
  isOver = true;
  await agenda.pass(agenda.now + 60_000, () => running === 0);
  await agenda.pass(agenda.now + 5_000);
  const left = (await subject.heldKeys()).filter((key) => !key.startsWith('held'));
  // Copies: what is held is lost again when the process shuts down.
  return { lost: [...lost], wrong, events: [...events], granted, overloaded, longestMs, left };
};
