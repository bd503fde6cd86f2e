import type { LoadResult } from '../processes/load.js';

/** From the beginning of each section to that of the next, in ms, where one caller was alone: `noteTimes` has to be set. */
export const periodsOf = ({ times }: LoadResult): readonly number[] =>
  times.slice(1).map(([beganAt], i) => beganAt - times[i]![0]);
