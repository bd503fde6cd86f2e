import { closedLoop, PERMITS, WRITER_OF, type LoopKind, type LoopResult } from './closed-loop.js';
import { Crowd } from './crowd.js';
import { shown, type Table } from './table.js';

const CALLERS = 10;

const TITLES: Readonly<Record<LoopKind, string>> = {
  exclusive: 'Exclusive lock',
  fair: 'Fair lock',
  'read-write': `Read-write lock, one of ${WRITER_OF} calls writes`,
  permit: `${PERMITS} permits`,
};

/** A number of processes, with warm-up and measured time in virtual ms. With many processes a round takes seconds. */
interface Size {
  readonly processes: number;
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

const SIZES: Readonly<Record<LoopKind, readonly Size[]>> = {
  exclusive: [
    { processes: 10, warmUpMs: 2_000, measuredMs: 10_000 },
    { processes: 100, warmUpMs: 3_000, measuredMs: 15_000 },
    { processes: 1_000, warmUpMs: 4_000, measuredMs: 32_000 },
  ],
  fair: [
    { processes: 10, warmUpMs: 1_000, measuredMs: 5_000 },
    { processes: 100, warmUpMs: 4_000, measuredMs: 12_000 },
    { processes: 300, warmUpMs: 4_000, measuredMs: 22_000 },
  ],
  'read-write': [
    { processes: 10, warmUpMs: 1_000, measuredMs: 5_000 },
    { processes: 30, warmUpMs: 2_000, measuredMs: 6_000 },
    { processes: 100, warmUpMs: 2_000, measuredMs: 6_000 },
  ],
  permit: [
    { processes: 10, warmUpMs: 500, measuredMs: 2_000 },
    { processes: 30, warmUpMs: 500, measuredMs: 1_500 },
    { processes: 100, warmUpMs: 400, measuredMs: 1_000 },
  ],
};

const HEAD = [
  'processes × callers',
  'locks/s',
  'requests per lock',
  'bytes per lock',
  'commands per lock',
  'entries read per lock',
  'messages per lock',
  "Jain's index",
  'longest wait',
  'callers without a turn',
  'channels',
  'subscribers',
  'queue',
];

const rowOf = (result: LoopResult): readonly string[] => {
  const { plan, perLock, subscriptions } = result;
  return [
    `${shown(plan.processes)} × ${plan.callers}`,
    shown(result.locksPerSecond),
    shown(perLock.requests),
    shown(perLock.bytes),
    shown(perLock.commands),
    shown(perLock.entries),
    shown(perLock.messages),
    result.jain.toFixed(3),
    `${shown(result.longestWaitMs / 1_000)} s`,
    shown(result.unserved),
    shown(subscriptions.channels),
    shown(subscriptions.receivers),
    `${shown(result.queueBytes / 1_000)} kB`,
  ];
};

export interface OneKeyReport {
  readonly table: Table;
  readonly violations: number;
}

/** Measures callers of one key that acquire it again and again. */
export const measureOneKey = async (
  kind: LoopKind,
  seed: number,
  sizes?: readonly number[],
): Promise<OneKeyReport> => {
  const results: LoopResult[] = [];
  for (const size of SIZES[kind].filter(({ processes }) => sizes?.includes(processes) ?? true)) {
    const plan = { kind, callers: CALLERS, ...size };
    results.push(await Crowd.with(seed, (crowd) => closedLoop(crowd, plan)));
  }
  return {
    table: { title: TITLES[kind], head: HEAD, rows: results.map(rowOf) },
    violations: results.reduce((sum, { violations }) => sum + violations, 0),
  };
};
