import { dashboardSvg } from './dashboard.js';
import { TIMELINES, TREES } from './pictures.js';
import { terminalSvg } from './terminal.js';
import { timelineSvg } from './timeline.js';
import { treeSvg } from './tree.js';

/** Resolves with the pictures of the pages by their file names. */
export const draw = async (): Promise<ReadonlyMap<string, string>> => {
  const drawn = [
    ...TIMELINES.map((one) => [one.file, timelineSvg(one)] as const),
    ...TREES.map((one) => [one.file, treeSvg(one)] as const),
    ['list.svg', await terminalSvg()],
    ['dashboard.svg', dashboardSvg()],
  ] as const;
  return new Map(drawn);
};
