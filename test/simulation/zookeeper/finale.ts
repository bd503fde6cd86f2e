import { pathOf, type World } from './play-fault.js';
import { visitOnce, type Machine, type ZkCallerHost } from './zk-callers.js';
import type { ZkPlan, ZkVisit } from './zk-plan.js';

/** How long an undo pauses at most, and its requests take, in ms. */
const SETTLING_MS = 2_500;
/** How much later a waiter has a key than its holder releases it: a few messages, in ms. */
const LATER_MS = 20;
/** How long a waiter has no connection when the key is released, and pauses before it connects, in ms. */
const ABSENT_MS = 200;
const RECONNECT_MS = 300;

/** Names of the nodes by which a start finds out what it may do. */
const CHECK = pathOf('nest-redis-lock-check-');

/** What has to be true when the faults are over. */
export const finale = async (plan: ZkPlan, world: World, host: ZkCallerHost): Promise<void> => {
  const { agenda, machines } = world;
  await agenda.pass(agenda.now + SETTLING_MS + 2 * plan.commandTimeoutMs);
  const alive = machines.filter(({ process, isClosing }) => !process.crashed && !isClosing);
  // Nodes of processes that are gone end with their sessions. An undo pauses for up to a second between its tries.
  await agenda.pass(agenda.now + Math.max(1_000, 2 * plan.sessionMs));
  lookForUsage(alive, world);
  lookForNodes(world, 'afterwards');
  await serveAll(plan, world, alive, host);
  await handOver(plan, world, alive, host);
  await agenda.pass(agenda.now + 1_000);
  lookForUsage(alive, world);
  lookForNodes(world, 'in the end');
  await closeAll(world, alive);
};

/** A process without callers has nothing, and undoes nothing. */
const lookForUsage = (alive: readonly Machine[], { witness }: World): void => {
  for (const { manager, process } of alive)
    for (const [what, count] of Object.entries(manager.usage))
      if (count !== 0) witness.report('leftovers', `${process.name} has ${count} ${what}`);
};

/** No node is left without a caller. */
const lookForNodes = ({ ensemble, witness }: World, when: string): void => {
  for (const [path, owner] of ensemble.tree.ephemerals)
    // An interrupted start leaves this node until its session ends; it is in nothing's way.
    if (!path.startsWith(CHECK))
      witness.report('leftovers', `${path} of ${owner.toString(16)} is there ${when}`);
};

/** Starts a visit in a process. The function that it returns says whether the visit is over. */
const begin = (machine: Machine, visit: ZkVisit, name: string, host: ZkCallerHost): (() => boolean) => {
  let over = false;
  machine.process.arrive(() => void visitOnce(machine, visit, name, host).then(() => (over = true)));
  return () => over;
};

/** A late hello of an abandoned connection may move a session once more. */
const TRIES = 3;
const CALM = { thinkMs: 0, waitMs: 20_000, workMs: 1, downgrades: false } as const;

/** When all is well again, every process gets each key, in each way in which it was taken. */
const serveAll = async (
  { processes }: ZkPlan,
  { agenda, witness }: World,
  alive: readonly Machine[],
  host: ZkCallerHost,
): Promise<void> => {
  const visits = processes.flatMap(({ callers }) => callers.flat());
  const firsts = new Map(
    visits.map(({ key, kind, permits }) => [
      `${key} ${kind}`,
      { ...CALM, key, kind, ...(permits && { permits }) },
    ]),
  );
  for (const one of alive)
    for (const visit of firsts.values()) {
      const before = witness.grants;
      for (let tries = 0; tries < TRIES && witness.grants === before; tries++)
        await agenda.pass(agenda.now + 30_000, begin(one, visit, 'afterwards', host));
      if (witness.grants === before)
        witness.report('nobody', `${one.process.name} does not get ${visit.key} afterwards`);
    }
};

/** A waiter gets a key at once when it is released, also on another connection than that on which it began to wait. */
const handOver = async (
  { latencyMs, sessionMs, waiterLoses, processes }: ZkPlan,
  { agenda, witness }: World,
  alive: readonly Machine[],
  host: ZkCallerHost,
): Promise<void> => {
  const [holder, waiter, ...others] = alive;
  if (!holder || !waiter) return;
  const isPermit = processes[0]!.callers[0]![0]!.kind === 'permit';
  const kind = isPermit ? ({ kind: 'permit', permits: 1 } as const) : ({ kind: 'exclusive' } as const);
  const visit = { ...CALM, key: 'handed over', ...kind };
  const before = witness.grants;
  const endsAt = agenda.now + 2 * sessionMs;
  const holds = begin(holder, { ...visit, workMs: 2 * sessionMs }, 'holder', host);
  await agenda.pass(agenda.now + 500);
  // They give up while they wait.
  for (const one of others) begin(one, { ...visit, waitMs: 200 }, 'hasty', host);
  await agenda.pass(agenda.now + 100);
  const waits = begin(waiter, visit, 'waiter', host);
  await agenda.pass(agenda.now + 500);
  if (waiterLoses === 'connection') waiter.link.cut(undefined);
  if (waiterLoses === 'event') {
    await agenda.pass(endsAt - ABSENT_MS / 2);
    waiter.link.cut(undefined);
    waiter.link.silence(agenda.now + ABSENT_MS);
  }
  await agenda.pass(agenda.now + 30_000, holds);
  const releasedAt = agenda.now;
  await agenda.pass(agenda.now + 30_000, waits);
  const lateMs = agenda.now - releasedAt;
  const awayMs = waiterLoses === 'event' ? ABSENT_MS + RECONNECT_MS + sessionMs / 3 : 0;
  if (witness.grants !== before + 2) witness.report('nobody', `not both get ${visit.key}`);
  else if (lateMs > LATER_MS + 6 * latencyMs[1] + awayMs)
    witness.report('wake-up', `a waiter has a free key after ${lateMs} ms`);
};

/** Every process closes. Its session ends with it, and no connection is left. */
const closeAll = async (
  { agenda, ensemble, witness, machines }: World,
  alive: readonly Machine[],
): Promise<void> => {
  let open = alive.length;
  for (const machine of alive) {
    machine.isClosing = true;
    machine.process.arrive(() => void machine.manager.close().then(() => (open -= 1)));
  }
  await agenda.pass(agenda.now + 3_000);
  if (open > 0) witness.report('leftovers', `${open} processes do not close`);
  if (ensemble.sessions.size > 0) witness.report('leftovers', `${ensemble.sessions.size} sessions are left`);
  for (const { link, process } of machines)
    if (link.sockets.size > 0 && !process.crashed)
      witness.report('leftovers', `${process.name} has ${link.sockets.size} sockets`);
};
