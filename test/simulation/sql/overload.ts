import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import type { LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import { Agenda } from '../engine/agenda.js';
import { Random } from '../engine/random.js';
import { SimDatabase } from './sim-database.js';
import { machineOf, SQL_PARTS, type SqlParts } from './simulate-sql.js';
import type { SqlMode } from './sql-plan.js';

/** A process that asks for more than its database serves. */
export interface OverloadPlan {
  readonly mode: SqlMode;
  /** Callers of free keys, each of which asks again at once when it is done. */
  readonly callers: number;
  /** Number of callers that come together, once in each lease. */
  readonly burst: number;
  /** Time between the process and the database, in ms each way. */
  readonly latencyMs: number;
  /** How long the database works at a statement, in ms. */
  readonly serviceMs: number;
  /** Whether another transaction locks the rows of a third of the held locks, for 12 s in each lease. */
  readonly locksRows: boolean;
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
  /** Holds that are left in the table when all callers have gone. */
  readonly left: readonly string[];
}

const HELD = 20;
const WATCHDOG_MS = 30_000;
const LEASES = 3;
const LOCKED_MS = 12_000;

/** Holds 20 locks with default options over three leases, while others of the process ask for free keys. */
export const simulateOverload = async (
  plan: OverloadPlan,
  parts: SqlParts = SQL_PARTS,
): Promise<OverloadRun> => {
  const agenda = new Agenda();
  const { mode, latencyMs, serviceMs } = plan;
  const lockWaitMs = mode === 'polling' ? 1_000 : 200;
  const rules = { lockWaitMs, statementMs: 1_800, serviceMs };
  const database = new SimDatabase(agenda, new Random('server'), 1, rules, () => undefined);
  const machine = machineOf(
    {
      ...{ mode, pooled: false, commandTimeoutMs: 2_000, watchdogMs: WATCHDOG_MS, seed: 1, lanes: 4 },
      latencyMs: [latencyMs, latencyMs],
    },
    parts,
    { agenda, database, name: 'p', rate: 1, saw: () => undefined },
  );
  const { process, manager } = machine;
  const call = defaultCall(manager.settings);
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
  const startedAt = agenda.now;
  process.arrive(() => {
    for (let i = 0; i < plan.callers; i++) void loop(`free ${i}`);
  });
  for (let lease = 0; lease < LEASES; lease++) {
    const at = startedAt + lease * WATCHDOG_MS;
    agenda.at(at + 5_000, () =>
      process.arrive(() => {
        for (let i = 0; i < plan.burst; i++) void ask(`burst ${lease} ${i}`);
      }),
    );
    if (!plan.locksRows) continue;
    for (const key of keys.filter((_, i) => i % 3 === 0))
      agenda.at(at + 8_000, () => database.lockRow(key, agenda.now + LOCKED_MS));
  }
  await agenda.pass(startedAt + LEASES * WATCHDOG_MS);
  isOver = true;
  await agenda.pass(agenda.now + 60_000, () => running === 0);
  await agenda.pass(agenda.now + 5_000);
  const now = database.table.now();
  const left = [...database.table.rows].flatMap(([key, { until }]) =>
    until > now && !key.startsWith('held') ? [key] : [],
  );
  return { lost, wrong, events, granted, overloaded, longestMs, left };
};
