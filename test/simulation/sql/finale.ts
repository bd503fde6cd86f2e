import type { Lease } from '../../../lib/core/lease/lease.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import { begin, serveAll, type CallerHost } from '../callers/callers.js';
import type { Machine, World } from './play-fault.js';
import type { SqlPlan } from './sql-plan.js';
import { passOn } from './wake-ups.js';

/** How long it takes at most until a hold without an owner is released, when all is well again. */
const SETTLING_MS = 4_000;
const HOUR_MS = 3_600_000;
/** Longest pause of a waiter that is alone, although messages get lost. */
const LONGEST_PAUSE_MS = { notifications: 2_000, polling: 250 };
/** A watched waiter is slower than its poll by the queue, its timers and a few messages, in ms. */
const LATER_MS = 450;

/** What has to be true when the faults are over. */
export const finale = async (
  plan: SqlPlan,
  world: World,
  host: CallerHost,
  saw: (what: string) => unknown,
): Promise<void> => {
  const { agenda, database, machines, witness } = world;
  await agenda.pass(agenda.now + SETTLING_MS);
  const isAnyGone = machines.some(({ process }) => process.crashed);
  if (plan.watchdogMs > SETTLING_MS && !isAnyGone && !plan.pooled) lookForHolds(world, 'soon');
  await agenda.pass(agenda.now + 5 * plan.watchdogMs);
  lookForHolds(world, 'when its lease is over');
  const visits = plan.processes.flatMap(({ callers }) => callers.flat());
  await serveAll(machines, visits, plan.watchdogMs, host);
  const alive = machines.filter(({ process }) => !process.crashed);
  await handOver(plan, world, alive, host, saw);
  await giveUp(world, alive, host);
  await agenda.pass(agenda.now + 2 * plan.watchdogMs);
  lookAtQueue(world, alive);
  await sweepAll(world, alive);
  await closeAll(world, alive);
  if (alive.length > 0 && database.table.rows.size > 0)
    witness.report('leftovers', `${database.table.rows.size} rows are not swept`);
};

/** A hold without an owner is not left in the table. */
const lookForHolds = ({ database, witness }: World, when: string): void => {
  for (const [key, { until, owner, members, kind }] of database.table.rows) {
    const now = database.table.now();
    const isHeld = kind === 'exclusive' ? until > now : [...members.values()].some((end) => end > now);
    if (isHeld) witness.report('leftovers', `${key} is not free ${when}: ${owner} has it`);
  }
};

/** A waiter gets a key that was released, at the latest with its next poll. */
const handOver = async (
  { mode, latencyMs, losesWakeUps, watchdogMs }: SqlPlan,
  { agenda, database, witness }: World,
  alive: readonly Machine[],
  { report }: CallerHost,
  saw: (what: string) => unknown,
): Promise<void> => {
  const [holder, waiter] = alive;
  if (!holder || !waiter) return;
  const key = 'handed over';
  let releasedAt = Infinity;
  let gotAt = Infinity;
  const failed = (): void => report('failed afterwards', 'hand-over');
  const call = { ...defaultCall(holder.manager.settings), waitMs: 20_000 };
  // The first request may find out only that its connection has ended.
  const acquired = ({ manager }: Machine): Promise<Lease> =>
    manager.acquire([key], call).catch(() => manager.acquire([key], call));
  const hold = async (): Promise<void> => {
    const lease = await acquired(holder);
    // A waiter that was woken before waits again.
    await holder.process.sleep(losesWakeUps ? 3_000 : 500);
    await lease.release();
    releasedAt = agenda.now;
  };
  const wait = async (): Promise<void> => {
    await waiter.process.sleep(100);
    const lease = await acquired(waiter);
    gotAt = agenda.now;
    await lease.release();
  };
  holder.process.arrive(() => void hold().catch(failed));
  waiter.process.arrive(() => void wait().catch(failed));
  if (losesWakeUps) {
    await agenda.pass(agenda.now + 500);
    if (mode === 'notifications') passOn(database, key);
    await agenda.pass(agenda.now + 500);
    // Only connections for wake-ups have waited so long.
    for (const { link } of [holder, waiter]) link.muteWakeUps();
  }
  await agenda.pass(agenda.now + 30_000, () => gotAt < Infinity);
  const lateMs = gotAt - releasedAt;
  if (lateMs < 50) saw('a waiter is woken at once');
  else saw('a waiter polls');
  const limitMs = LONGEST_PAUSE_MS[mode] * 1.25 + 6 * latencyMs[1] + LATER_MS;
  if (lateMs > limitMs || Number.isNaN(lateMs))
    witness.report(
      'wake-up',
      `a waiter gets a free key after ${lateMs} ms, with a lease of ${watchdogMs} ms`,
    );
};

/** Waiters whose key is not released in time give up. */
const giveUp = async ({ agenda }: World, alive: readonly Machine[], host: CallerHost): Promise<void> => {
  const [holder, ...waiters] = alive;
  if (!holder) return;
  const visit = { key: 'given up', thinkMs: 0, waitMs: 5_000, workMs: 900 };
  const ends = [begin(holder, visit, 'holder', host)];
  await agenda.pass(agenda.now + 200);
  for (const one of waiters)
    for (const waitMs of [80, 200]) ends.push(begin(one, { ...visit, waitMs, workMs: 0 }, 'waiter', host));
  await agenda.pass(agenda.now + 20_000, () => ends.every((isOver) => isOver()));
};

/** A process without waiters is in no wait queue. */
const lookAtQueue = ({ database, witness }: World, alive: readonly Machine[]): void => {
  for (const [key, { queue }] of database.table.rows)
    for (const { process } of alive)
      if (queue.includes(process.name))
        witness.report('leftovers', `${process.name} is in the wait queue of ${key}`);
};

/** Rows are swept after a day, also when the database is down for some hours. */
const sweepAll = async ({ agenda, database }: World, alive: readonly Machine[]): Promise<void> => {
  if (alive.length === 0) return;
  database.die();
  await agenda.pass(agenda.now + 3 * HOUR_MS);
  database.isUp = true;
  await agenda.pass(agenda.now + 27 * HOUR_MS);
};

/** Every process closes, and leaves no connection. */
const closeAll = async ({ agenda, witness, database }: World, alive: readonly Machine[]): Promise<void> => {
  let open = alive.length;
  for (const { process, manager } of alive)
    process.arrive(() => void manager.close().then(() => (open -= 1)));
  await agenda.pass(agenda.now + 10_000);
  if (open > 0) witness.report('leftovers', `${open} processes do not close`);
  if (alive.length > 0 && database.sessions.size > 0)
    witness.report('leftovers', `${database.sessions.size} connections are left`);
};
