import { it } from 'vitest';
import { NEWEST_REDISSON, OLDER_REDISSON } from '../support/redisson/redisson-build.js';

/** Time for one of several increments in sequence, on a busy machine. */
const INCREMENT_MS = 60;

const EXTENTS = {
  /** With --short. */
  short: { versions: [NEWEST_REDISSON], whole: [NEWEST_REDISSON], increments: 300 },
  usual: { versions: [NEWEST_REDISSON, OLDER_REDISSON], whole: [NEWEST_REDISSON], increments: 2_000 },
  long: {
    versions: [NEWEST_REDISSON, OLDER_REDISSON],
    whole: [NEWEST_REDISSON, OLDER_REDISSON],
    increments: 20_000,
  },
} as const satisfies Record<string, unknown>;

export type Extent = keyof typeof EXTENTS;

const extentOf = (name = 'usual'): Extent => {
  if (!Object.hasOwn(EXTENTS, name))
    throw new Error(`TEST_INTEROP is ${name}, which is none of ${Object.keys(EXTENTS).join(', ')}`);
  return name as Extent;
};

/** How much is run: `npm run test:interop -- --short` and `-- --long` set it. */
const EXTENT = extentOf(process.env['TEST_INTEROP']);

const SERVER_SETS = ['one', 'cluster', 'cluster-unsharded'] as const;

const serversOf = (name = 'one'): (typeof SERVER_SETS)[number] => {
  const found = SERVER_SETS.find((one) => one === name);
  if (found) return found;
  throw new Error(`TEST_INTEROP_SERVERS is ${name}, which is none of ${SERVER_SETS.join(', ')}`);
};

/** What Redis is: one server, or a cluster of three masters, with or without sharded messages. */
export const SERVERS = serversOf(process.env['TEST_INTEROP_SERVERS']);

const { versions, whole: wholeBeside, increments } = EXTENTS[EXTENT];
/** Without sharded messages one case of each object, unless all is asked for. */
const whole = SERVERS === 'cluster-unsharded' && EXTENT !== 'long' ? [] : wholeBeside;

/** The versions of Redisson that every object is tried beside. */
export const VERSIONS: readonly string[] = versions;

const nothing = () => undefined;
const NONE = Object.assign(nothing, { each: () => nothing }) as unknown as typeof it;

/**
 * `it` for the cases of an object beyond the one that runs beside every version. Where a version has that one only,
 * the others do not exist, so that none of them counts as left out.
 */
export const casesBeside = (version: string): Pick<typeof it, 'each'> & typeof it => {
  const all: readonly string[] = whole;
  return all.includes(version) ? it : NONE;
};

/** The same for what an older Redisson does in another way. */
export const casesBesideNewest = (version: string): typeof it =>
  version === NEWEST_REDISSON && whole.length > 0 ? it : NONE;

/** Returns how often each caller adds 1, so that all callers together reach the number of this extent. */
export const roundsFor = (callers: number): number => Math.ceil(increments / callers);

/** How long that may take. */
export const LOAD_MS = 30_000 + increments * INCREMENT_MS;
