import type { Noted, Shared } from '../processes/load.js';

/**
 * How many sections began while those that were inside left no room for them. Each was noted after its caller had the
 * lock and before it gave that back, so two that overlap here had it at the same time.
 */
export const overcrowded = (times: readonly Noted[], shared: Shared): number => {
  const begun = times.toSorted(([one], [other]) => one - other);
  let inside: Noted[] = [];
  let count = 0;
  for (const section of begun) {
    const [beganAt, , mode] = section;
    inside = inside.filter(([, endedAt]) => endedAt > beganAt);
    const hasRoom =
      'atOnce' in shared
        ? inside.length < shared.atOnce
        : inside.every(([, , other]) => mode === 'read' && other === 'read');
    if (!hasRoom) count++;
    inside.push(section);
  }
  return count;
};
