import type { Random } from '../engine/random.js';
import type { Fault, FaultKind, PlanSettings, ProcessPlan } from './plan.js';

/** After this many ms nothing new goes wrong. */
const LAST_AT = 2_500;

const KINDS: readonly Exclude<FaultKind, 'server-slow'>[] = [
  'freeze',
  'freeze-step',
  'crash',
  'crash-step',
  'shut-down',
  'cut',
  'cut',
  'kill',
  'half-open',
  'half-open',
  'partition',
  'slow',
  'slow',
  'spurious-hint',
  'wall-clock',
  'server-stop',
  'server-restart',
  'server-failover',
  'server-failover',
  'server-flush',
  'delete',
  'server-clock',
  'server-mood',
  'server-mood',
];

const makeFault = (
  random: Random,
  kind: (typeof KINDS)[number],
  { watchdogMs, commandTimeoutMs }: PlanSettings,
  process: string,
  keys: readonly string[],
): Fault => {
  const at = random.chance(0.5) ? random.between(0, 400) : random.between(0, LAST_AT);
  const role = random.pick(['command', 'subscriber'] as const);
  const short = random.whole(1, commandTimeoutMs * 2);
  const long = random.whole(commandTimeoutMs, watchdogMs * 2);
  const ms = random.chance(0.5) ? short : long;
  switch (kind) {
    case 'freeze':
      return { kind, at, process, ms };
    case 'freeze-step':
      return { kind, process, step: random.whole(1, 400), ms };
    case 'crash':
    case 'shut-down':
    case 'spurious-hint':
      return { kind, at, process };
    case 'crash-step':
      return { kind, process, step: random.whole(1, 400) };
    case 'cut':
      return { kind, at, process, role, lateMs: random.chance(0.5) ? ms : undefined };
    case 'kill':
      return { kind, at, process, role };
    case 'half-open': {
      const direction = random.pick(['up', 'down', 'both'] as const);
      return { kind, at, process, role, direction, ms: random.chance(0.3) ? null : ms };
    }
    case 'partition':
      return { kind, at, process, ms };
    case 'slow':
      return { kind, at, process, role, ms: long, extraMs: random.whole(5, commandTimeoutMs) };
    case 'wall-clock':
      return { kind, at, process, ms: random.pick([-1, 1]) * random.whole(100, 3 * watchdogMs) };
    case 'server-stop':
      return { kind, at, ms };
    case 'server-restart':
      return { kind, at, downMs: random.whole(1, 500), keepsData: random.chance(0.6) };
    case 'server-failover':
      return { kind, at, downMs: random.whole(1, 100), behindMs: random.whole(1, 300) };
    case 'server-flush':
      return { kind, at };
    case 'delete':
      return { kind, at, key: random.pick(keys) };
    case 'server-clock':
      return { kind, at, ms: random.pick([-1, 1, 1]) * random.whole(10, 2 * watchdogMs) };
    case 'server-mood':
      return {
        kind,
        at,
        ms: random.whole(1, 600),
        mood: random.pick(['readonly', 'tryagain', 'loading', 'oom'] as const),
      };
  }
};

const losesData = (fault: Fault): boolean =>
  fault.kind === 'server-flush' ||
  fault.kind === 'server-failover' ||
  (fault.kind === 'server-restart' && !fault.keepsData);

/** In how many plans the server is slower than its callers for a while. */
const SLOW = 0.1;

/** Returns the faults, and the slow server if the plan has one. With dice of its own: all else stays as it was. */
export const withSlowServer = (
  random: Random,
  { commandTimeoutMs }: PlanSettings,
  faults: readonly Fault[],
): readonly Fault[] => {
  if (!random.chance(SLOW)) return faults;
  const eachMs = random.between(1, commandTimeoutMs / 3);
  return [
    ...faults,
    { kind: 'server-slow', at: random.between(0, 400), ms: random.whole(100, 1_500), eachMs },
  ];
};

/** A server that loses its data and whose clock is behind the last grant gives old tokens again, which README says. */
const forward = (fault: Fault): Fault =>
  fault.kind === 'server-clock' ? { ...fault, ms: Math.abs(fault.ms) } : fault;

/** What goes wrong. Each plan knows only a few kinds, so that each kind also happens undisturbed by the others. */
export const makeFaults = (
  random: Random,
  settings: PlanSettings,
  processes: readonly ProcessPlan[],
  keys: readonly string[],
): Fault[] => {
  const kinds = [random.pick(KINDS), random.pick(KINDS), random.pick(KINDS)];
  const count = random.pick([0, 1, 1, 2, 3, 5]);
  const faults = Array.from({ length: count }, () =>
    makeFault(random, random.pick(kinds), settings, random.pick(processes).name, keys),
  );
  return faults.some(losesData) ? faults.map(forward) : faults;
};
