import type { Random } from '../engine/random.js';
import type { ListenerPlan, LockStep, Misdeed, PlanSettings, Step } from './plan.js';

/** How many ms a lease is asked to last: a while, or as long as anybody asks for. */
const extension = (random: Random, { watchdogMs, longestMs }: PlanSettings): Step => ({
  do: 'extend',
  ms: random.chance(0.5) ? longestMs : random.whole(100, 3 * watchdogMs),
});

const up = (random: Random): number => random.pick([0, 0, 0, 1, 2]);

/** How a lease is taken once more, inside. */
export type NestedLock = () => LockStep;

/** For how long answers pile up, in ms. */
const PILE_UP_MS = 9;

/** The loop is blocked while answers are on their way: they come in one go, and one of them ends what another is about. */
const answersAtOnce = (random: Random, key: string, nested: NestedLock): Step[] => {
  const block: Step = { do: 'later', ms: random.whole(0, 1), step: { do: 'block', ms: PILE_UP_MS } };
  const steps: Step[] = [
    { do: 'fork', detached: false, step: block },
    { do: 'fork', detached: true, step: { do: 'forceUnlock', key } },
  ];
  if (random.chance(0.3)) return [...steps, { do: 'inspect', key }];
  return [
    { ...nested(), style: 'withLock', keys: ['cold0'], permits: undefined, inside: steps, after: undefined },
  ];
};

/** What nobody should do inside a lock, but what a program can do. */
export const makeMisdeeds = (
  random: Random,
  settings: PlanSettings,
  keys: readonly string[],
  nested: NestedLock,
): Step[] => {
  const { watchdogMs, misdeeds } = settings;
  const key = random.pick(keys);
  const soon = (step: Step): Step => ({ do: 'later', ms: random.whole(0, 40), step });
  const now = (step: Step): Step => (random.chance(0.5) ? step : soon(step));
  const release: Step = { do: 'release', up: up(random) };
  const ask: Step = { do: 'ask', up: up(random) };
  switch (random.pick(misdeeds)) {
    case 'release':
      return [release];
    case 'release-beside': {
      // Given back while some are inside and others wait to go in.
      const siblings = Array.from({ length: random.pick([1, 2, 2, 3]) }, nested);
      return [{ do: 'siblings', steps: [...siblings, soon(release)] }];
    }
    case 'extend':
      return [now(extension(random, settings)), ...(random.chance(0.5) ? [release] : [])];
    case 'block': {
      const ms = random.pick([random.whole(20, 200), random.whole(watchdogMs, 2 * watchdogMs)]);
      return [{ do: 'block', ms }, random.chance(0.6) ? nested() : ask];
    }
    case 'force':
      return [now({ do: 'forceUnlock', key }), ...(random.chance(0.3) ? [{ do: 'verify' } as const] : [])];
    case 'answers-at-once':
      return answersAtOnce(random, key, nested);
    case 'run':
      return [{ do: 'run', inside: [random.chance(0.6) ? nested() : ask] }];
    case 'shut-down':
      return [now({ do: 'shutDown' })];
  }
};

const MISDEEDS: readonly Misdeed[] = [
  'release',
  'release-beside',
  'release-beside',
  'extend',
  'extend',
  'block',
  'force',
  'answers-at-once',
  'answers-at-once',
  'run',
  'shut-down',
];

/** Each plan knows only a few kinds, so that each kind also happens undisturbed by the others. */
export const chooseMisdeeds = (random: Random): Misdeed[] =>
  random.chance(0.55) ? [] : [random.pick(MISDEEDS), random.pick(MISDEEDS), random.pick(MISDEEDS)];

/** What a caller goes on doing with a lease that is over. */
export const makeAftermath = (random: Random, settings: PlanSettings): Step[] | undefined => {
  if (random.chance(0.5)) return undefined;
  const steps: Step[] = [];
  for (let i = random.pick([1, 1, 2, 3]); i > 0; i--) {
    steps.push(
      random.pick<Step>([
        { do: 'ask', up: 0 },
        { do: 'ask', up: 0 },
        { do: 'release', up: 0 },
        { do: 'verify' },
        extension(random, settings),
        extension(random, settings),
        { do: 'run', inside: [] },
        { do: 'sleep', ms: random.whole(1, 20) },
      ]),
    );
  }
  return steps;
};

/** What listeners do to those who cause the events. */
export const makeListeners = (random: Random, { misdeeds }: PlanSettings): ListenerPlan[] => {
  const any = (): ListenerPlan => ({
    on: random.pick(['acquired', 'released', 'released', 'lost'] as const),
    nth: random.whole(1, 6),
    do: random.pick(['forceUnlock', 'block', 'release'] as const),
  });
  const listeners = Array.from({ length: random.pick([0, 0, 1, 2]) }, any);
  // Nothing ends a lease sooner after an answer than a listener does.
  if (misdeeds.includes('answers-at-once') && random.chance(0.6)) {
    for (let nth = random.whole(1, 3); nth <= 6; nth += 2) {
      listeners.push({ on: 'released', nth, do: 'release' });
    }
  }
  return listeners;
};
