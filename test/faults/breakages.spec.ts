import { beforeAll, describe, expect, it } from 'vitest';
import type { Violation } from '../checker/violation.js';
import { timelineOf } from '../checker/timeline.js';
import { inOrder } from '../checker/history.js';
import type { Breakage } from './breakages/breakage.js';
import { breakLibrary } from './breakages/broken-library.js';
import { DirectedStage } from './breakages/directed-stage.js';
import { BREAKAGES } from './breakages/index.js';
import { SETTINGS } from './settings.js';
import { SingleRedis } from './topology/single-redis.js';

/** Long enough for a schedule by hand, on a machine that is busy with other things. */
const DIRECTED = { ...SETTINGS, watchdogMs: 1_500, commandTimeoutMs: 500 };
/**
 * How often it is played with a broken copy: on a machine that is very busy, waits that are too long are put down to
 * that, or something stood still in the middle. The library as it is has one try.
 */
const TRIES = 4;
const TIMEOUT_MS = 400_000;

interface Outcome {
  readonly violations: readonly Violation[];
  readonly timeline: string;
}

const intact = new Map<string, Outcome>();
const broken = new Map<string, Outcome>();

const playOnce = async (topology: SingleRedis, { play }: Breakage, name: string): Promise<Outcome> => {
  const stage = new DirectedStage(topology, name, DIRECTED.keyPrefix);
  await play(stage);
  const { events, violations } = await stage.verdict();
  return { violations, timeline: timelineOf(inOrder(events), violations) };
};

/** Plays it with a broken library until that could be done to the end. */
const play = async (
  topology: SingleRedis,
  breakage: Breakage,
  library: string,
  name: string,
): Promise<Outcome> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await playOnce(topology, breakage, `${name}-${attempt}`);
    } catch (error) {
      // A machine that stood still in the middle of it.
      if (attempt === TRIES) throw error;
      await topology.seat(2, library);
    }
  }
};

const seenIn = ({ violations }: Outcome, { seenBy }: Breakage): string[] =>
  violations.map(({ rule }) => rule).filter((rule) => seenBy.includes(rule));

/** Breaks the library, one time after the other, until none is left to break. */
const breakThemAll = async (left: Breakage[]): Promise<void> => {
  await using topology = await SingleRedis.start({ workers: 0, persistence: 'none', settings: DIRECTED });
  for (let breakage = left.shift(); breakage; breakage = left.shift()) {
    const library = breakLibrary(breakage.patches);
    await topology.seat(2, library);
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const outcome = await play(topology, breakage, library, `try${attempt}`);
      broken.set(breakage.name, outcome);
      if (seenIn(outcome, breakage).length > 0) break;
    }
  }
};

const leaveThemAll = async (): Promise<void> => {
  await using topology = await SingleRedis.start({ workers: 2, persistence: 'none', settings: DIRECTED });
  for (const [i, breakage] of BREAKAGES.entries()) {
    intact.set(breakage.name, await playOnce(topology, breakage, `d${i}`));
  }
};

beforeAll(async () => {
  await Promise.all([breakThemAll([...BREAKAGES]), leaveThemAll()]);
}, TIMEOUT_MS);

describe('the checker sees what is wrong in a copy of the library that was broken on purpose', () => {
  it('in more than a dozen ways', () => {
    expect(new Set(BREAKAGES.map(({ name }) => name)).size).toBe(BREAKAGES.length);
    expect(BREAKAGES.length).toBeGreaterThanOrEqual(12);
  });

  it.each(BREAKAGES)('$name', (breakage) => {
    const outcome = broken.get(breakage.name)!;
    expect(seenIn(outcome, breakage), outcome.timeline).not.toEqual([]);
  });
});

describe('and nothing in the library as it is, when the same is done to it', () => {
  it.each(BREAKAGES)('$name', ({ name }) => {
    const { violations, timeline } = intact.get(name)!;
    expect(violations, timeline).toEqual([]);
  });
});
