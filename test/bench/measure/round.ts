import type { LoadResult } from '../processes/load.js';

/** All slices of one contender in one round. */
export interface Total {
  sections: number;
  elapsedMs: number;
  cpuMs: number;
  violations: number;
}

/** Slices are short: whatever else the machine does while a round lasts then hits all contenders alike. */
export const SLICE_MS = 100;
const TURNS = 4;

/** One round: short slices of all contenders in turn, there and back again, `TURNS` times each at full pace. */
export const runRound = async <C>(
  contenders: readonly C[],
  pace: number,
  slice: (contender: C, forMs: number) => Promise<LoadResult>,
): Promise<readonly Total[]> => {
  const totals = new Map<C, Total>(
    contenders.map((contender) => [contender, { sections: 0, elapsedMs: 0, cpuMs: 0, violations: 0 }]),
  );
  const back = [...contenders].reverse();
  for (let turn = 0; turn < Math.max(1, TURNS * pace); turn++) {
    for (const contender of [...contenders, ...back]) {
      const { sections, elapsedMs, cpuMs, violations } = await slice(contender, SLICE_MS);
      const total = totals.get(contender)!;
      total.sections += sections;
      total.elapsedMs += elapsedMs;
      total.cpuMs += cpuMs;
      total.violations += violations;
    }
  }
  return [...totals.values()];
};

/** Sections for each second. */
export const rateOf = ({ sections, elapsedMs }: Pick<Total, 'sections' | 'elapsedMs'>): number =>
  (sections / elapsedMs) * 1_000;

/** CPU time of the process for each section, in µs. */
export const cpuOf = ({ sections, cpuMs }: Total): number => (cpuMs / sections) * 1_000;
