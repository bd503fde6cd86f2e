import type { Ending } from '../support/cycles/cycle.js';
import type { Stock } from './process/soak.process.js';

/** What the process has, and what Redis has of it. */
export interface FullStock extends Stock {
  /** `PUBSUB CHANNELS`, without those on which processes hear of their turns. */
  readonly channels: number;
  /** Keys but those of the fencing tokens, of which there are never more than slots of a cluster. */
  readonly keys: number;
  readonly fenceKeys: number;
  readonly connections: number;
}

export interface SoakResult {
  readonly cycles: number;
  readonly seconds: number;
  readonly first: FullStock;
  readonly last: FullStock;
  /** From the first to the last, after equally many cycles each. */
  readonly heapBytes: readonly number[];
  readonly endings: Readonly<Record<Ending, number>>;
  /** Holds that nobody ended, so that Redis did when their lease was over. */
  readonly expiredHolds: number;
  /** Sections that were not alone. */
  readonly overlaps: number;
  /** Whether the process had nothing more to do after its apps were closed. */
  readonly endsByItself: boolean;
}

/** One line of the table. */
export interface Line {
  readonly what: string;
  readonly before: string;
  readonly after: string;
  readonly isGood: boolean;
}

const MB = 1_048_576;
/** What the heap may grow by for reasons of its own: code that was compiled later, caches of a fixed size. */
const HEAP_NOISE_BYTES = 1.2 * MB;
const CLUSTER_SLOTS = 16_384;
/** A caller whose lease is over before the grant is here asks again, so many times at most. */
const GRANTS_IN_VAIN = 3;

/**
 * How much it grew from the first to the last, by its trend: the median of the slopes between any two (Theil and Sen). A
 * single look at a heap differs from the next one by as much as a small leak.
 */
const growthOf = (sizes: readonly number[]): number => {
  const slopes = sizes.flatMap((size, at) =>
    sizes.slice(at + 1).map((later, ahead) => (later - size) / (ahead + 1)),
  );
  slopes.sort((one, other) => one - other);
  return slopes[Math.floor(slopes.length / 2)]! * (sizes.length - 1);
};

const asMb = (bytes: number): string => `${(bytes / MB).toFixed(2)} MB`;

const UNCHANGED = ['resources', 'listeners', 'connections'] as const;
const EMPTY = ['usage', 'timers', 'subscriptions', 'channels', 'keys'] as const;

/** Everything that has to be where it began. */
export const verdictOn = ({
  first,
  last,
  heapBytes,
  endings,
  expiredHolds,
  overlaps,
  endsByItself,
}: SoakResult): readonly Line[] => [
  {
    what: `heap after a garbage collection (trend ${asMb(growthOf(heapBytes))}, may be ${asMb(HEAP_NOISE_BYTES)})`,
    before: asMb(heapBytes.at(0)!),
    after: asMb(heapBytes.at(-1)!),
    isGood: growthOf(heapBytes) <= HEAP_NOISE_BYTES,
  },
  ...UNCHANGED.map((what) => ({
    what,
    before: `${first[what]}`,
    after: `${last[what]}`,
    isGood: last[what] === first[what],
  })),
  ...EMPTY.map((what) => ({
    what,
    before: `${first[what]}`,
    after: `${last[what]}`,
    isGood: first[what] === 0 && last[what] === 0,
  })),
  {
    what: `fence keys (at most ${CLUSTER_SLOTS})`,
    before: `${first.fenceKeys}`,
    after: `${last.fenceKeys}`,
    isGood: last.fenceKeys <= CLUSTER_SLOTS,
  },
  {
    what: `holds that Redis had to end (at most ${GRANTS_IN_VAIN} for each cycle that lets them expire)`,
    before: '',
    after: `${expiredHolds}`,
    isGood: expiredHolds <= endings.expired * GRANTS_IN_VAIN,
  },
  { what: 'sections that were not alone', before: '', after: `${overlaps}`, isGood: overlaps === 0 },
  {
    what: 'the process ends by itself',
    before: '',
    after: endsByItself ? 'yes' : 'no',
    isGood: endsByItself,
  },
  // A soak in which nothing went wrong would say little.
  ...Object.entries(endings).map(([ending, times]) => ({
    what: `cycles that ended: ${ending}`,
    before: '',
    after: times.toLocaleString('en'),
    isGood: times > 0,
  })),
];

export const isGood = (result: SoakResult): boolean => verdictOn(result).every((line) => line.isGood);

const HEAD = ['', 'at the start', 'at the end', ''];

/** The whole result, for people. */
export const tableOf = (result: SoakResult): string => {
  const rows = verdictOn(result).map(({ what, before, after, isGood }) => [
    what,
    before,
    after,
    isGood ? 'ok' : 'NOT OK',
  ]);
  const all = [HEAD, ...rows];
  const widths = HEAD.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  return all
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};
