import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import { ZooKeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { noteEvents } from '../callers/callers.js';
import { Witness, type Broken } from '../callers/witness.js';
import { Agenda } from '../engine/agenda.js';
import { Chronicle } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import { SimProcess } from '../engine/sim-process.js';
import { finale } from './finale.js';
import { planFault, type World } from './play-fault.js';
import { SimEnsemble } from './sim-ensemble.js';
import { callerOf, type Machine, type ZkCallerHost } from './zk-callers.js';
import { ZkLink } from './zk-link.js';
import type { ZkPlan } from './zk-plan.js';

/** What the simulation takes of the library; a copy with a mistake has the same. */
export interface ZkParts {
  readonly LockManager: typeof LockManager;
  readonly ZooKeeperStore: typeof ZooKeeperStore;
}

export const ZK_PARTS: ZkParts = { LockManager, ZooKeeperStore };

/** When callers have to be done. */
const LONGEST_MS = 300_000;

/** What became of a plan. */
export interface ZkRun {
  readonly broken: readonly Broken[];
  readonly grants: number;
  /** What callers were told, by code. */
  readonly reported: ReadonlyMap<string, number>;
  /** What happened in the ensemble and on the way to it. */
  readonly seen: ReadonlySet<string>;
  /** What callers and listeners saw, in order. */
  readonly visible: readonly string[];
  /** How many requests the servers worked at. */
  readonly requests: number;
}

/** Runs a plan in virtual time. The same plan always gives the same run. */
export const simulateZooKeeper = async (plan: ZkPlan, parts: ZkParts = ZK_PARTS): Promise<ZkRun> => {
  const agenda = new Agenda();
  const witness = new Witness(() => agenda.now);
  const reported = new Map<string, number>();
  const seen = new Set<string>();
  const saw = (what: string): void => void seen.add(what);
  const report = (code: string, who: string): void => {
    witness.note(who, code);
    reported.set(code, (reported.get(code) ?? 0) + 1);
  };
  const { servers, rate, reportMs, sessionMs, sweepMs, tellsLate, seed } = plan;
  const random = new Random(`ensemble of ${seed}`);
  const ensemble = new SimEnsemble({
    ...{ agenda, random, servers, rate, reportMs, sessionMs, sweepMs, tellsLate, saw },
  });
  const machines = plan.processes.map((its, i) =>
    machineOf(plan, parts, ensemble, { name: `p${i}`, ...its }),
  );
  for (const machine of machines) noteEvents(machine, witness);
  const world: World = { agenda, ensemble, machines, witness };
  for (const fault of plan.faults) planFault(fault, world);
  agenda.onRest = () => witness.look();
  const host: ZkCallerHost = {
    ...{ agenda, witness, report },
    random: new Random(`run of ${seed}`),
    slackMs: slackOf(plan),
  };
  const onUnhandled = (reason: unknown): void => witness.report('unhandled', String(reason));
  process.on('unhandledRejection', onUnhandled);
  try {
    await untilDone(plan, world, host);
    await agenda.pass(Math.max(agenda.now, plan.troubleMs));
    for (const { process, link } of machines) {
      await agenda.pass(process.at);
      process.interruptions.clear();
      link.heal();
    }
    await finale(plan, world, host);
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  const { broken, grants, visible } = witness;
  const requests = ensemble.servers.reduce((sum, server) => sum + server.requests, 0);
  return { broken, grants, reported, seen, visible, requests };
};

/** Runs the callers of all processes, until all are done whose process has not crashed. */
const untilDone = async (plan: ZkPlan, { agenda, machines }: World, host: ZkCallerHost): Promise<void> => {
  const running = new Map<Machine, number>();
  machines.forEach((machine, p) => {
    const { callers } = plan.processes[p]!;
    running.set(machine, callers.length);
    callers.forEach((visits, c) => {
      const name = `${machine.process.name}c${c}`;
      const ended = (): void => void running.set(machine, running.get(machine)! - 1);
      machine.process.arrive(() => void callerOf(machine, visits, name, host).then(ended));
    });
  });
  const isDone = (machine: Machine): boolean => machine.process.crashed || running.get(machine) === 0;
  let isOver = false;
  await agenda.pass(LONGEST_MS, () => (isOver = machines.every(isDone)));
  if (!isOver) host.witness.report('endless', 'a caller still waits');
};

/** A call takes longer than its wait by its last requests, and by what stops its process. */
const slackOf = ({ commandTimeoutMs, faults, sessionMs }: ZkPlan): number =>
  faults.reduce(
    (sum, fault) => sum + (fault.kind === 'pause' ? fault.forMs : 0),
    3 * commandTimeoutMs + sessionMs,
  );

const machineOf = (
  { seed, latencyMs, sessionMs, commandTimeoutMs }: ZkPlan,
  parts: ZkParts,
  ensemble: SimEnsemble,
  { name, rate }: { readonly name: string; readonly rate: number },
): Machine => {
  const { agenda, terms } = ensemble;
  const random = new Random(`${name} of ${seed}`);
  const process = new SimProcess(name, agenda, new Chronicle(), random, rate, false);
  process.dice = new Random(`chance of ${name} of ${seed}`);
  const link = new ZkLink({ process, ensemble, agenda, random, latencyMs, saw: terms.saw });
  const store = new parts.ZooKeeperStore({
    connect: 'simulated:2181',
    sessionTimeoutMs: sessionMs,
    commandTimeoutMs,
    runtime: process,
    dialers: link.dialers,
  });
  const settings = {
    ...DEFAULT_SETTINGS,
    // Notes decide nothing about locks, and the simulated servers set no data.
    holderInfo: false,
    ...{ keyPrefix: '', watchdogMs: sessionMs, shutdownGraceMs: 0 },
  };
  const log = { log: () => undefined, warn: () => undefined };
  const manager = new parts.LockManager(store, settings, log, process);
  return { process, link, manager, isClosing: false };
};
