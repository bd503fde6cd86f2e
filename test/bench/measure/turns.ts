import type { Together } from './together.js';

interface Turn {
  readonly process: number;
  readonly began: number;
  readonly ended: number;
}

type Noted = Pick<Together, 'results'>;

const turnsOf = ({ results }: Noted): readonly Turn[] =>
  results
    .flatMap(({ times }, process) => times.map(([began, ended]) => ({ process, began, ended })))
    .sort((a, b) => a.began - b.began);

/** Returns in ascending order how long the key was free each time that it went from one process to another one. */
export const handOvers = (ran: Noted): readonly number[] => {
  const turns = turnsOf(ran);
  return turns
    .slice(1)
    .flatMap(({ process, began }, i) => (process === turns[i]!.process ? [] : [began - turns[i]!.ended]))
    .sort((a, b) => a - b);
};

/**
 * Returns the share of sections that came in turn. If callers queue again as soon as they leave, each one is next after
 * all others. So the section that is as many sections earlier as there are callers has to be of the same process.
 */
export const shareInTurn = (ran: Noted, callers: number): number | undefined => {
  const turns = turnsOf(ran);
  const later = turns.slice(callers);
  if (later.length === 0) return undefined;
  return later.filter(({ process }, i) => process === turns[i]!.process).length / later.length;
};

/** Returns in ascending order how long sections took, in ms. */
export const lengthsOf = (ran: Noted): readonly number[] =>
  turnsOf(ran)
    .map(({ began, ended }) => ended - began)
    .sort((a, b) => a - b);
