import { beforeAll, describe, expect, it } from 'vitest';
import type { Violation } from '../checker/violation.js';
import { timelineOf } from '../checker/timeline.js';
import { inOrder } from '../checker/history.js';
import { IN_LABORATORY } from '../mistakes/index.js';
import type { LaboratoryMistake } from '../mistakes/mistake.js';
import { breakLibrary } from '../mistakes/source/broken-library.js';
import { DirectedStage } from './directed/directed-stage.js';
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

const playOnce = async (
  topology: SingleRedis,
  { laboratory }: LaboratoryMistake,
  name: string,
): Promise<Outcome> => {
  const stage = new DirectedStage(topology, name, DIRECTED);
  await laboratory.play(stage);
  const { events, violations } = await stage.verdict();
  return { violations, timeline: timelineOf(inOrder(events), violations) };
};

/** Plays it with a broken library until that could be done to the end. */
const play = async (
  topology: SingleRedis,
  mistake: LaboratoryMistake,
  library: string,
  name: string,
): Promise<Outcome> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await playOnce(topology, mistake, `${name}-${attempt}`);
    } catch (error) {
      // A machine that stood still in the middle of it.
      if (attempt === TRIES) throw error;
      await topology.seat(2, library);
    }
  }
};

const seenIn = ({ violations }: Outcome, { laboratory }: LaboratoryMistake): string[] =>
  violations.map(({ rule }) => rule).filter((rule) => laboratory.rules.includes(rule));

/** Breaks the library, one time after the other, until none is left to break. */
const breakThemAll = async (left: LaboratoryMistake[]): Promise<void> => {
  await using topology = await SingleRedis.start({ workers: 0, persistence: 'none', settings: DIRECTED });
  for (let mistake = left.shift(); mistake; mistake = left.shift()) {
    const { url: library } = breakLibrary(mistake.name, mistake.edits);
    await topology.seat(2, library);
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const outcome = await play(topology, mistake, library, `try${attempt}`);
      broken.set(mistake.name, outcome);
      if (seenIn(outcome, mistake).length > 0) break;
    }
  }
};

const leaveThemAll = async (): Promise<void> => {
  await using topology = await SingleRedis.start({ workers: 2, persistence: 'none', settings: DIRECTED });
  for (const [i, mistake] of IN_LABORATORY.entries()) {
    intact.set(mistake.name, await playOnce(topology, mistake, `d${i}`));
  }
};

beforeAll(async () => {
  await Promise.all([breakThemAll([...IN_LABORATORY]), leaveThemAll()]);
}, TIMEOUT_MS);

describe('the checker sees what is wrong in a copy of the library that was broken on purpose', () => {
  it('in more than a dozen ways', () => {
    expect(new Set(IN_LABORATORY.map(({ name }) => name)).size).toBe(IN_LABORATORY.length);
    expect(IN_LABORATORY.length).toBeGreaterThanOrEqual(12);
  });

  it.each(IN_LABORATORY)('$name', (mistake) => {
    const outcome = broken.get(mistake.name)!;
    expect(seenIn(outcome, mistake), outcome.timeline).not.toEqual([]);
  });
});

describe('and nothing in the library as it is, when the same is done to it', () => {
  it.each(IN_LABORATORY)('$name', ({ name }) => {
    const { violations, timeline } = intact.get(name)!;
    expect(violations, timeline).toEqual([]);
  });
});
