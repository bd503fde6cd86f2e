import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { callerOf, serveAll, type CallerHost } from '../callers/callers.js';
import { Witness, type Broken } from '../callers/witness.js';
import { Agenda } from '../engine/agenda.js';
import { Chronicle } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import { SimProcess } from '../engine/sim-process.js';
import { NodeLink } from './node-link.js';
import { planFault, type Machine } from './play-fault.js';
import type { QuorumPlan } from './quorum-plan.js';
import { SimNode } from './sim-node.js';
import { SimNodeStore } from './sim-node-store.js';

/** What the simulation takes of the library; a copy with a mistake has the same. */
export interface QuorumParts {
  readonly LockManager: typeof LockManager;
  readonly MemorySpace: typeof MemorySpace;
  readonly QuorumStore: typeof QuorumStore;
  readonly StoreFailure: typeof StoreFailure;
}

export const QUORUM_PARTS: QuorumParts = { LockManager, MemorySpace, QuorumStore, StoreFailure };

/** When callers have to be done. */
const LONGEST_MS = 120_000;
/** How long it takes at most until what nobody holds is given back, when all is well again. */
const SETTLING_MS = 3_000;

/** What became of a plan. */
export interface QuorumRun {
  readonly broken: readonly Broken[];
  readonly grants: number;
  /** Number of commits at all nodes. */
  readonly commits: number;
  /** What callers were told, by code. */
  readonly reported: ReadonlyMap<string, number>;
}

/** Runs a plan in virtual time. The same plan always gives the same run. */
export const simulateQuorum = async (
  plan: QuorumPlan,
  parts: QuorumParts = QUORUM_PARTS,
): Promise<QuorumRun> => {
  const agenda = new Agenda();
  const random = new Random(`run of ${plan.seed}`);
  const chance = new Random(`chance of ${plan.seed}`);
  const witness = new Witness(() => agenda.now);
  const reported = new Map<string, number>();
  const nodes = plan.nodeRates.map(
    (rate, i) => new SimNode(`n${i}`, agenda, rate, plan.nodesAheadMs[i]!, parts.MemorySpace),
  );
  const machines = plan.processes.map(({ rate }, i) => machineOf(plan, parts, agenda, nodes, `p${i}`, rate));
  for (const fault of plan.faults) planFault(fault, agenda, nodes, machines);
  agenda.at(plan.troubleMs, () => nodes.forEach((node) => node.setClock(0)));
  agenda.onRest = () => witness.look();
  const onUnhandled = (reason: unknown): void => witness.report('unhandled', String(reason));
  process.on('unhandledRejection', onUnhandled);
  for (const { process: its } of machines) its.dice = chance;
  let running = 0;
  const report = (code: string): void => void reported.set(code, (reported.get(code) ?? 0) + 1);
  const host: CallerHost = { agenda, witness, random, report };
  try {
    machines.forEach((machine, p) => {
      plan.processes[p]!.callers.forEach((visits, c) => {
        running += 1;
        const who = `${machine.process.name}c${c}`;
        machine.process.arrive(() => void callerOf(machine, visits, who, host).then(() => (running -= 1)));
      });
    });
    const crashed = (): number =>
      machines.reduce(
        (sum, { process }, p) => sum + (process.crashed ? plan.processes[p]!.callers.length : 0),
        0,
      );
    let over = false;
    await agenda.pass(LONGEST_MS, () => (over = running <= crashed()));
    if (!over) witness.report('endless', 'somebody still waits');
    await agenda.pass(Math.max(agenda.now, plan.troubleMs));
    for (const { process } of machines) await agenda.pass(process.at);
    await agenda.pass(agenda.now + SETTLING_MS);
    lookForLeftovers(plan, machines, nodes, witness);
    await agenda.pass(agenda.now + 5 * plan.watchdogMs);
    const all = plan.processes.flatMap(({ callers }) => callers.flat());
    await serveAll(machines, all, plan.watchdogMs, host);
    let open = 0;
    for (const { process, manager } of machines) {
      if (process.crashed) continue;
      open += 1;
      process.arrive(() => void manager.close().then(() => (open -= 1)));
    }
    await agenda.pass(agenda.now + 5 * plan.watchdogMs);
    if (open > 0) witness.report('leftovers', `${open} processes do not close`);
    for (const { name, space } of nodes)
      if (space.size.holds > 0) witness.report('leftovers', `${name} has holds`);
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  const commits = nodes.reduce((sum, node) => sum + node.commits, 0);
  return { broken: witness.broken, grants: witness.grants, commits, reported };
};

/** What nobody holds is given back soon, and does not wait for the end of its lease. What a crash has left does. */
const lookForLeftovers = (
  plan: QuorumPlan,
  machines: readonly Machine[],
  nodes: readonly SimNode[],
  witness: Witness,
): void => {
  if (plan.watchdogMs <= SETTLING_MS || machines.some(({ process }) => process.crashed)) return;
  for (const { name, space } of nodes) {
    if (space.size.holds > 0) witness.report('leftovers', `${name} has a hold of nobody`);
  }
};

const machineOf = (
  plan: QuorumPlan,
  { LockManager, QuorumStore, StoreFailure }: QuorumParts,
  agenda: Agenda,
  nodes: readonly SimNode[],
  name: string,
  rate: number,
): Machine => {
  const random = new Random(`${name} of ${plan.seed}`);
  const process = new SimProcess(name, agenda, new Chronicle(), random, rate, false);
  const links = nodes.map(
    (node) =>
      new NodeLink(process, node, agenda, random, plan.latencyMs, plan.commandTimeoutMs, StoreFailure),
  );
  const nodeStores = links.map((link) => new SimNodeStore(link, agenda));
  const store = new QuorumStore({
    nodes: nodeStores,
    names: nodes.map((node) => node.name),
    minDelayMs: plan.watchdogMs,
    runtime: process,
  });
  const settings = { ...DEFAULT_SETTINGS, watchdogMs: plan.watchdogMs, shutdownGraceMs: 0 };
  const manager = new LockManager(store, settings, { log: () => undefined, warn: () => undefined }, process);
  return { process, links, nodeStores, store, manager };
};
