import { TIMELINES, TREES } from './pictures.js';
import { timelineSvg } from './timeline.js';
import { treeSvg } from './tree.js';

/** Returns the pictures of the pages by their file names. */
export const draw = (): ReadonlyMap<string, string> => {
  const drawn = [
    ...TIMELINES.map((one) => [one.file, timelineSvg(one)] as const),
    ...TREES.map((one) => [one.file, treeSvg(one)] as const),
  ];
  return new Map(drawn);
};
