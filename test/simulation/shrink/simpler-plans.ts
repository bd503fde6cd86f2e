import type { CallerPlan, Fault, LockStep, Plan, ProcessPlan, Step } from '../plan/plan.js';

/** The list without each of its members in turn. */
function* withoutOne<T>(list: readonly T[]): Generator<T[]> {
  for (let i = 0; i < list.length; i++) yield [...list.slice(0, i), ...list.slice(i + 1)];
}

/** The list with each of its members replaced in turn by something simpler; one may become several or none. */
function* withOneChanged<T>(list: readonly T[], simpler: (one: T) => Iterable<T[]>): Generator<T[]> {
  for (let i = 0; i < list.length; i++) {
    for (const instead of simpler(list[i]!)) yield [...list.slice(0, i), ...instead, ...list.slice(i + 1)];
  }
}

const OPTIONS = [
  'leaseMs',
  'watchdogMs',
  'abortAfterMs',
  'holdAtLeastMs',
  'ordinary',
  'onLost',
  'awaitRelease',
  'modes',
] as const;

function* simplerLock(step: LockStep): Generator<Step[]> {
  // What is inside may be all that matters.
  yield step.inside.filter((one) => one.do === 'lock');
  for (const inside of withoutOne(step.inside)) yield [{ ...step, inside }];
  for (const option of OPTIONS) if (step[option] !== undefined) yield [{ ...step, [option]: undefined }];
  for (const after of withoutOne(step.after ?? [])) yield [{ ...step, after }];
  if (step.keys.length > 1) yield [{ ...step, keys: [...new Set(step.keys)].slice(1) }];
  if (step.style !== 'withLock') yield [{ ...step, style: 'withLock' }];
  for (const inside of withOneChanged(step.inside, simplerStep)) yield [{ ...step, inside }];
}

function* simplerStep(step: Step): Generator<Step[]> {
  yield [];
  switch (step.do) {
    case 'lock':
      return yield* simplerLock(step);
    case 'siblings':
      yield [...step.steps];
      for (const steps of withOneChanged(step.steps, simplerStep)) yield [{ ...step, steps }];
      return;
    case 'fork':
      return yield [step.step];
    case 'later':
    case 'through':
      yield [step.step];
      for (const [instead] of withOneChanged([step.step], simplerStep))
        if (instead) yield [{ ...step, step: instead }];
      return;
    case 'run':
      yield [...step.inside];
      for (const inside of withOneChanged(step.inside, simplerStep)) yield [{ ...step, inside }];
      return;
    case 'sleep':
    case 'block':
      if (step.ms > 10) yield [{ ...step, ms: Math.floor(step.ms / 2) }];
      return;
    case 'work':
    case 'meet':
      if (step.abortAfterMs !== undefined) yield [{ ...step, abortAfterMs: undefined }];
      return;
    case 'update':
      if (step.thinkMs + step.slowMs > 0) yield [{ ...step, thinkMs: 0, slowMs: 0 }];
      return;
    default:
      return;
  }
}

function* simplerCaller(caller: CallerPlan): Generator<CallerPlan[]> {
  for (const steps of withOneChanged(caller.steps, simplerStep)) yield [{ ...caller, steps }];
  if (caller.startAt > 0) yield [{ ...caller, startAt: 0 }];
}

function* simplerProcess(process: ProcessPlan): Generator<ProcessPlan[]> {
  for (const callers of withoutOne(process.callers)) if (callers.length > 0) yield [{ ...process, callers }];
  for (const callers of withOneChanged(process.callers, simplerCaller)) yield [{ ...process, callers }];
  for (const listeners of withoutOne(process.listeners ?? [])) yield [{ ...process, listeners }];
  if (process.rate !== 1) yield [{ ...process, rate: 1 }];
}

const rounded = (time: number): number => Math.round(time / 10) * 10;

function* simplerFault(fault: Fault): Generator<Fault[]> {
  if ('at' in fault && fault.at !== rounded(fault.at)) yield [{ ...fault, at: rounded(fault.at) }];
  if ('ms' in fault && fault.ms !== null && Math.abs(fault.ms) > 20) {
    yield [{ ...fault, ms: Math.trunc(fault.ms / 2) }];
  }
}

/** Plans that are a little simpler than this one, the greatest steps first. */
export function* simplerPlans(plan: Plan): Generator<Plan> {
  for (const processes of withoutOne(plan.processes)) if (processes.length > 0) yield { ...plan, processes };
  for (const faults of withoutOne(plan.faults)) yield { ...plan, faults };
  for (const processes of withOneChanged(plan.processes, simplerProcess)) yield { ...plan, processes };
  for (const faults of withOneChanged(plan.faults, simplerFault)) yield { ...plan, faults };
}
