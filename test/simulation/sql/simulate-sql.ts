import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import { MysqlBell } from '../../../lib/stores/mysql/mysql-bell.js';
import { PostgresListener } from '../../../lib/stores/postgres/postgres-listener.js';
import { SqlFailure } from '../../../lib/stores/sql/sql.js';
import { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { callerOf, noteEvents, type CallerHost } from '../callers/callers.js';
import { Witness, type Broken } from '../callers/witness.js';
import { Agenda } from '../engine/agenda.js';
import { Chronicle } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import { SimProcess } from '../engine/sim-process.js';
import { finale } from './finale.js';
import { planFault, type Machine, type World } from './play-fault.js';
import { SimDatabase, type ServerRules } from './sim-database.js';
import { SimDialect } from './sim-dialect.js';
import { SimLink } from './sim-link.js';
import type { SqlPlan } from './sql-plan.js';
import { bellNameOf, wakeUpsOf, type WakeUpParts } from './wake-ups.js';

/** What the simulation takes of the library; a copy with a mistake has the same. */
export interface SqlParts extends WakeUpParts {
  readonly LockManager: typeof LockManager;
  readonly SqlStore: typeof SqlStore;
  readonly SqlFailure: typeof SqlFailure;
}

export const SQL_PARTS: SqlParts = { LockManager, SqlStore, SqlFailure, MysqlBell, PostgresListener };

/** When callers have to be done. */
const LONGEST_MS = 120_000;

/** What became of a plan. */
export interface SqlRun {
  readonly broken: readonly Broken[];
  readonly grants: number;
  /** What callers were told, by code. */
  readonly reported: ReadonlyMap<string, number>;
  /** What happened in the database and on the way to it. */
  readonly seen: ReadonlySet<string>;
  /** What callers and listeners saw, in order. */
  readonly visible: readonly string[];
  /** How many statements reached the database. */
  readonly requests: number;
}

/** Runs a plan in virtual time. The same plan always gives the same run. */
export const simulateSql = async (plan: SqlPlan, parts: SqlParts = SQL_PARTS): Promise<SqlRun> => {
  const agenda = new Agenda();
  const witness = new Witness(() => agenda.now);
  const reported = new Map<string, number>();
  const seen = new Set<string>();
  let isOver = false;
  const saw = (what: string): void => void (isOver || seen.add(what));
  const report = (code: string, who: string): void => {
    witness.note(who, code);
    reported.set(code, (reported.get(code) ?? 0) + 1);
  };
  const serverChance = new Random(`server of ${plan.seed}`);
  const database = new SimDatabase(agenda, serverChance, plan.rate, rulesOf(plan), saw);
  const machines = plan.processes.map(({ rate }, i) =>
    machineOf(plan, parts, { agenda, database, saw, name: `p${i}`, rate }),
  );
  for (const machine of machines) noteEvents(machine, witness);
  const { watchdogMs } = plan;
  const world: World = { agenda, database, machines, witness, watchdogMs };
  for (const fault of plan.faults) planFault(fault, world);
  agenda.onRest = () => witness.look();
  const host: CallerHost = { agenda, witness, random: new Random(`run of ${plan.seed}`), report };
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
    database.heal();
    // The finale has an outage of its own.
    isOver = true;
    await finale(plan, world, host, (what) => seen.add(what));
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  const { broken, grants, visible } = witness;
  return { broken, grants, reported, seen, visible, requests: database.requests };
};

/** Runs the callers of all processes. */
const untilDone = async (plan: SqlPlan, { agenda, machines }: World, host: CallerHost): Promise<void> => {
  let running = 0;
  machines.forEach((machine, p) => {
    plan.processes[p]!.callers.forEach((visits, c) => {
      running += 1;
      const who = `${machine.process.name}c${c}`;
      machine.process.arrive(() => void callerOf(machine, visits, who, host).then(() => (running -= 1)));
    });
  });
  let isOver = false;
  await agenda.pass(LONGEST_MS, () => (isOver = running <= crashedCallers(plan, machines)));
  if (!isOver) host.witness.report('endless', 'a caller still waits');
};

const crashedCallers = (plan: SqlPlan, machines: readonly Machine[]): number =>
  machines.reduce(
    (sum, { process }, p) => sum + (process.crashed ? plan.processes[p]!.callers.length : 0),
    0,
  );

/** As the real stores set it up. Behind a proxy the time-outs are up to the server. */
const rulesOf = ({ mode, pooled, commandTimeoutMs }: SqlPlan): ServerRules =>
  mode === 'polling' || pooled
    ? { lockWaitMs: 1_000, statementMs: Infinity }
    : { lockWaitMs: Math.min(200, commandTimeoutMs / 2), statementMs: commandTimeoutMs * 0.9 };

export interface MachineTerms {
  readonly agenda: Agenda;
  readonly database: SimDatabase;
  readonly name: string;
  readonly rate: number;
  saw(what: string): void;
}

/** What a process needs of a plan. */
type MachinePlan = Pick<
  SqlPlan,
  'mode' | 'pooled' | 'commandTimeoutMs' | 'watchdogMs' | 'seed' | 'latencyMs' | 'lanes'
>;

/** A process with its store and its connections. */
export const machineOf = (
  plan: MachinePlan,
  parts: SqlParts,
  { agenda, database, name, rate, saw }: MachineTerms,
): Machine => {
  const { mode, pooled, commandTimeoutMs: timeoutMs, watchdogMs, seed } = plan;
  const random = new Random(`${name} of ${seed}`);
  const process = new SimProcess(name, agenda, new Chronicle(), random, rate, false);
  process.dice = new Random(`chance of ${name} of ${seed}`);
  const link = new SimLink({
    process,
    database,
    agenda,
    random,
    latencyMs: plan.latencyMs,
    timeoutMs,
    Failure: parts.SqlFailure,
    saw,
  });
  const wakeUps = wakeUpsOf(link, name, { mode, pooled, timeoutMs }, parts);
  const rowLocked = (): unknown =>
    new parts.SqlFailure('row locked', 'not-executed', { transient: true, keyOnly: true });
  const dialect = new SimDialect(
    { mode, me: name, bell: bellNameOf(name), wakeUps, rowLocked, saw },
    link,
    agenda,
    pooled,
    timeoutMs / 2,
  );
  const store = new parts.SqlStore(dialect, {
    runtime: process,
    commandTimeoutMs: timeoutMs,
    lanes: plan.lanes,
    migratesOnStart: false,
    place: '',
  });
  const settings = { ...DEFAULT_SETTINGS, keyPrefix: '', watchdogMs, shutdownGraceMs: 0, holderInfo: false };
  const log = { log: () => undefined, warn: () => undefined };
  return { process, link, manager: new parts.LockManager(store, settings, log, process) };
};
