import { EXPECTATIONS, type Expectations } from '../../checker/expectations.js';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import { MAX_YIELD_MS } from '../../../lib/stores/redis/kinds/exclusive/queue-functions.js';
import { CORE, type Core } from '../core-api.js';
import { noteEvents } from '../callers/callers.js';
import { Agenda } from '../engine/agenda.js';
import { Chronicle, rounded } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import type { Plan, Step } from '../plan/plan.js';
import type { Quirks } from '../quirks.js';
import { SimRegister } from '../server/sim-register.js';
import { SimServer } from '../server/sim-server.js';
import { withServer, type BorrowedServer } from '../server/spare-servers.js';
import { lookAfterwards, takeAfterwards, type Objects, type Wanted } from './afterwards.js';
import { Caller } from './caller.js';
import { GhostWatch } from './ghost-watch.js';
import { ClaimsSent } from './claims-sent.js';
import { Host, type Surroundings } from './host.js';
import { FaultInjector } from './inject-fault.js';

/** When the callers have to be done, in virtual ms; whoever is not then never will be. */
const LONGEST_RUN_MS = 90_000;
/** And then all that is left to do in the background. */
const LONGEST_REST_MS = 30_000;
/** How long a place lives that nobody keeps. */
const ENTRY_LIVES_MS = 5_000;
/** How many callers of crashed processes may stand in one line of a fair lock. */
const MAX_DEAD = 12;
/** How long the last bytes are on their way after all is closed. */
const AFTERMATH_MS = 3_000;

export interface Variation {
  readonly core?: Core;
  readonly quirks?: Quirks;
  /** Hears the events of each process. */
  readonly note?: (who: string, what: string) => void;
}

/** What a plan may be judged by: a key is taken a few ways through the network after it became free. */
export const expectationsFor = ({ settings }: Plan): Expectations => ({
  ...EXPECTATIONS,
  // The server counts times in whole ms.
  clocksMs: 1,
  // Timers are late by a little, and the clocks of the processes are not that of the history.
  sendingMs: 5,
  keepingMs: 1_000,
  provisionalLeaseMs: settings.longestMs / 3,
  // The longest yield window, and timers that are late.
  promptMs: MAX_YIELD_MS + 5 + 8 * settings.latencyMs[1],
});

/** What became of a plan. */
export interface Run {
  readonly events: readonly HistoryEvent[];
  /** How many steps each process made. */
  readonly steps: ReadonlyMap<string, number>;
  /** How many commands reached the server. */
  readonly requests: number;
}

/** Runs a plan from beginning to end in virtual time. The same plan always gives the same history. */
export const simulate = (plan: Plan, variation?: Variation): Promise<Run> =>
  withServer((borrowed) => simulateOn(borrowed, plan, variation));

const simulateOn = async (
  borrowed: BorrowedServer,
  plan: Plan,
  { core = CORE, quirks = {}, note }: Variation = {},
): Promise<Run> => {
  const agenda = new Agenda();
  const chronicle = new Chronicle();
  const server = new SimServer(agenda, chronicle, plan.settings.mayKill, core, borrowed);
  const register = new SimRegister(agenda, chronicle, new Random(`register of ${plan.seed}`));
  const claims = new ClaimsSent();
  const around: Surroundings = { agenda, chronicle, server, core, quirks, claims };
  const hosts = new Map(plan.processes.map((one) => [one.name, new Host(one, plan, around)]));
  const all = [...hosts.values()];
  if (note) for (const host of all) noteEvents(host, { note });
  const alive = (): Host[] => all.filter(({ process }) => !process.crashed);
  const ghosts = new GhostWatch(around, hosts, plan.settings);
  agenda.onRest = () => {
    for (const host of all) if (host.look()) ghosts.look(host);
  };
  const keys = keysOf(plan);
  const objects = objectsOf(plan);
  const injector = new FaultInjector(around, hosts, plan.settings);
  for (const fault of plan.faults) injector.plan(fault);

  const onUnhandled = (reason: unknown): void => {
    const message = reason instanceof Error ? reason.message : String(reason);
    chronicle.add({ type: 'unhandled', at: agenda.now, message });
  };
  process.on('unhandledRejection', onUnhandled);
  try {
    const running = new Set<Host>();
    for (const host of all) {
      const started = host.start();
      const callers = host.plan.callers.map(async (caller, i) => {
        await started;
        await new Caller(host, register, `${host.plan.name}c${i + 1}`).run(caller);
      });
      running.add(host);
      void Promise.all(callers).then(() => running.delete(host));
    }
    await agenda.pass(LONGEST_RUN_MS, () => [...running].every((host) => host.process.crashed));
    injector.stop();
    await agenda.pass(agenda.now + LONGEST_REST_MS, () => all.every((host) => host.isIdle));
    ghosts.lookAtAll();
    if (injector.troubledUntil > agenda.now) await agenda.pass(injector.troubledUntil);
    // What a crash has left in the store is there until the longest lease is over; some of it may still be on its way.
    await agenda.pass(agenda.now + AFTERMATH_MS);
    // So does the place of a process that crashed, for as long as it lives without being kept; and that of an owner
    // whose process has forgotten it.
    const forgotten = plan.faults.some(({ kind }) => kind === 'server-failover');
    if (forgotten || all.some(({ process }) => process.crashed)) {
      // One after the other of those who waited for a fair lock counts as dead.
      const times = plan.settings.fair ? MAX_DEAD : 1;
      await agenda.pass(agenda.now + times * Math.max(ENTRY_LIVES_MS, plan.settings.watchdogMs));
    }
    if (server.owners.length > 0) await agenda.pass(agenda.now + plan.settings.longestMs);
    for (const host of alive().filter(({ process }) => !process.stopping)) {
      let over = false;
      const after = () => takeAfterwards(host, keys).then(() => lookAfterwards(host, objects));
      host.process.arrive(() => void after().then(() => (over = true)));
      await agenda.pass(agenda.now + LONGEST_REST_MS, () => over && host.isIdle);
    }
    for (const host of alive()) host.reportUsage();
    for (const host of alive()) host.process.arrive(() => host.close());
    const awake = Math.max(agenda.now, ...alive().map((host) => host.process.at));
    await agenda.pass(awake + AFTERMATH_MS);
    for (const host of alive()) host.reportRemains();
    server.sweep();
  } finally {
    process.off('unhandledRejection', onUnhandled);
    server.close();
  }
  return {
    events: tidied(chronicle.events, hosts),
    steps: new Map(all.map((host) => [host.process.name, host.process.stepsMade])),
    requests: server.requests,
  };
};

const keysIn = (step: Step): readonly string[] => {
  switch (step.do) {
    case 'lock':
      return [...step.keys, ...step.inside.flatMap(keysIn)];
    case 'siblings':
      return step.steps.flatMap(keysIn);
    case 'run':
      return step.inside.flatMap(keysIn);
    case 'fork':
    case 'later':
    case 'through':
      return keysIn(step.step);
    default:
      return [];
  }
};

/** Callers use them between their locks, not inside. */
const objectsOf = ({ processes }: Plan): Objects => {
  const steps = processes.flatMap(({ callers }) => callers.flatMap((caller) => caller.steps));
  const used = (what: 'work' | 'meet'): string[] => [
    ...new Set(steps.flatMap((step) => (step.do === what ? [step.key] : []))),
  ];
  return { semaphores: used('work'), latches: used('meet') };
};

/** All keys that somebody wants. */
const keysOf = ({ processes, settings }: Plan): Wanted[] => {
  const keys = processes.flatMap(({ callers }) => callers.flatMap(({ steps }) => steps.flatMap(keysIn)));
  return [...new Set(keys)].map((key) => {
    const permits = settings.permits.find((one) => one.key === key)?.says[0] ?? undefined;
    // Who writes needs it alone.
    const mode = settings.readWrite && permits === undefined ? 'write' : undefined;
    return { key, permits, mode };
  });
};

/** In order, and without what a process would have done after its crash. */
const tidied = (events: readonly HistoryEvent[], hosts: ReadonlyMap<string, Host>): HistoryEvent[] =>
  inOrder(
    events.filter(
      (event) =>
        !('process' in event) ||
        event.process === undefined ||
        event.type === 'trouble' ||
        event.type === 'gone' ||
        // What it did in the very moment of its crash was done.
        event.at <= rounded(hosts.get(event.process)?.process.crashedAt ?? Infinity),
    ),
  );
