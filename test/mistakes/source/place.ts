import { declarationsIn, type Declaration } from './declarations.js';
import type { Edit } from './edit.js';
import { tokensOfLua, tokensOfTypeScript, type Token } from './tokens.js';

/** The text of each file of lib/, by its path in there. */
export type Sources = ReadonlyMap<string, string>;

interface Found extends Declaration {
  readonly file: string;
}

/** A piece of a file, and what is there instead. */
interface Cut {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly replace: string;
}

/** Only what is below the layers of Nest has mistakes made in it: that is what both stages judge. */
const SEARCHED = /^(core|stores)\//;

const known = new Map<string, Declaration[]>();

const declarationsOf = (source: string): Declaration[] => {
  const declarations = known.get(source) ?? declarationsIn(source);
  known.set(source, declarations);
  return declarations;
};

/** The one declaration with this name, wherever it is; or `file:name`, in a file of that name, wherever that is. */
export const declarationOf = (place: string, sources: Sources): Found => {
  const [name, ofFile] = place.split(':').reverse() as [string, string?];
  const isSearched = (file: string): boolean =>
    SEARCHED.test(file) && (ofFile === undefined || file.endsWith(`/${ofFile}.ts`));
  const all = [...sources].flatMap(([file, source]) =>
    isSearched(file)
      ? declarationsOf(source)
          .filter((declaration) => declaration.name === name)
          .map((declaration) => ({ ...declaration, file }))
      : [],
  );
  const [found, another] = all;
  if (!found) throw new Error(`nothing in lib/core or lib/stores is called ${place}`);
  if (another) throw new Error(`${name} is in lib/${found.file} and in lib/${another.file}`);
  return found;
};

const positionsOf = (wanted: readonly Token[], tokens: readonly Token[]): number[] =>
  tokens.flatMap((_, at) => (wanted.every(({ text }, i) => tokens[at + i]?.text === text) ? [at] : []));

const cutFor = (edit: Edit, sources: Sources): Cut => {
  const { file, language, start, end } = declarationOf(edit.in, sources);
  const tokensOf = language === 'Lua' ? tokensOfLua : tokensOfTypeScript;
  const wanted = tokensOf(edit.find);
  const tokens = tokensOf(sources.get(file)!.slice(start, end));
  const positions = wanted.length > 0 ? positionsOf(wanted, tokens) : [];
  if (positions.length !== 1) {
    throw new Error(`${edit.in} in lib/${file} has this ${positions.length} times, not once: ${edit.find}`);
  }
  const [at] = positions;
  const [first, last] = [tokens[at!]!, tokens[at! + wanted.length - 1]!];
  return { file, start: start + first.start, end: start + last.end, replace: edit.replace };
};

/**
 * The files that look different with these edits in them. Throws when one of them has no place in the source, or more
 * than one: the source has changed, and the table of mistakes has to follow.
 */
export const place = (name: string, edits: readonly Edit[], sources: Sources): Sources => {
  const noPlace = (cause: unknown): Error =>
    new Error(`"${name}" has no place in the source: ${(cause as Error).message}`, { cause });
  try {
    const cuts = edits.map((edit) => cutFor(edit, sources)).sort((a, b) => b.start - a.start);
    const edited = new Map<string, string>();
    const uncut = new Map<string, number>();
    for (const { file, start, end, replace } of cuts) {
      // From the end to the beginning, so that what is still to come stays where it was found.
      if (end > (uncut.get(file) ?? Infinity)) throw new Error(`two edits overlap in lib/${file}`);
      const source = edited.get(file) ?? sources.get(file)!;
      edited.set(file, source.slice(0, start) + replace + source.slice(end));
      uncut.set(file, start);
    }
    return edited;
  } catch (error) {
    throw noPlace(error);
  }
};
