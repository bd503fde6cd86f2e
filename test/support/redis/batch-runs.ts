import { BATCH_PARTS } from '../../../lib/stores/redis/kinds/any-kind.js';

const PARTS = new Map(BATCH_PARTS.map((part) => [part.letter, part]));
const LETTERS = new RegExp(`^(?:=?[${[...PARTS.keys()].join('')}])+$`);

/** One run in a batch: the letter of its script, and the arguments that the script gets. */
export interface BatchRun {
  readonly letter: string;
  readonly args: readonly string[];
}

/** Returns the runs of a batch, from the arguments of its request; undefined for the arguments of another script. */
export const batchRuns = ([letters = '', ...args]: readonly string[]): BatchRun[] | undefined => {
  if (!LETTERS.test(letters)) return undefined;
  const common = new Map<string, string[]>();
  let at = 0;
  const next = (count: number): string[] => args.slice(at, (at += count));
  return [...letters.matchAll(/(=?)(\w)/g)].map(([, changed, letter = '']) => {
    const part = PARTS.get(letter)!;
    if (changed) common.set(letter, next(1 + part.shared));
    const [beginning = '', ...shared] = common.get(letter)!;
    const [first = '', ...own] = next(part.args);
    return { letter, args: [beginning + first, ...own, ...shared] };
  });
};
