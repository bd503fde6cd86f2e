import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { MISTAKES } from './index.js';
import { CLUSTER_MISTAKES, REPLICATED_MISTAKES } from './table/cluster.mistakes.js';
import { CLUSTER_FAILOVER_MISTAKES, SENTINEL_FAILOVER_MISTAKES } from './table/failover.mistakes.js';
import { QUORUM_MISTAKES } from './table/quorum.mistakes.js';
import { SQL_MISTAKES } from './table/sql.mistakes.js';
import { LANE_MISTAKES } from './table/lane.mistakes.js';
import { SQL_SIMULATED_MISTAKES } from './table/sql-simulated.mistakes.js';
import { SQL_TOGETHER_MISTAKES } from './table/sql-together.mistakes.js';
import { ZOOKEEPER_SIMULATED_MISTAKES } from './table/zookeeper-simulated.mistakes.js';
import type { Mistake } from './mistake.js';
import type { Edit } from './source/edit.js';
import { declarationOf, place, type Sources } from './source/place.js';
import { readSources } from './source/sources.js';

const LIBRARY = readSources();
const IN_SOURCE: readonly Pick<Mistake, 'name' | 'edits'>[] = [
  ...MISTAKES.filter(({ edits }) => edits !== undefined),
  ...QUORUM_MISTAKES,
  ...SQL_SIMULATED_MISTAKES,
  ...LANE_MISTAKES,
  ...ZOOKEEPER_SIMULATED_MISTAKES,
  ...CLUSTER_MISTAKES,
  ...REPLICATED_MISTAKES,
  ...CLUSTER_FAILOVER_MISTAKES,
  ...SENTINEL_FAILOVER_MISTAKES,
  ...[...SQL_MISTAKES, ...SQL_TOGETHER_MISTAKES].flatMap(({ name, edits }) =>
    Object.values(edits).map((own) => ({ name, edits: own })),
  ),
];

const printer = ts.createPrinter({ removeComments: true });

/** The same code in TypeScript's own format, without a comment. */
const printed = (source: string): string =>
  printer.printFile(ts.createSourceFile('source.ts', source, ts.ScriptTarget.ES2022));

const syntaxErrorsIn = (source: string): string[] =>
  (ts.transpileModule(source, { reportDiagnostics: true }).diagnostics ?? []).map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, '\n'),
  );

describe('every mistake still has its place in the source', () => {
  it.each(IN_SOURCE)('$name', ({ name, edits = [] }) => {
    const edited = [...place(name, edits, LIBRARY)];
    expect(edited).not.toEqual([]);
    for (const [file, source] of edited) {
      expect(printed(source)).not.toBe(printed(LIBRARY.get(file)!));
      expect(syntaxErrorsIn(source)).toEqual([]);
    }
  });

  it('or in what the simulation has instead of a clock', () => {
    for (const { name, edits, simulation } of MISTAKES)
      expect(edits ?? simulation?.quirks, name).toBeDefined();
  });

  it('each has a name of its own, and is played somewhere', () => {
    expect(new Set(MISTAKES.map(({ name }) => name)).size).toBe(MISTAKES.length);
    for (const { name, simulation, laboratory, onRedis } of MISTAKES)
      expect(simulation ?? laboratory ?? onRedis, name).toBeDefined();
  });

  it('what is played on real servers has the mistake itself in it', () => {
    for (const { name, edits, laboratory, onRedis } of MISTAKES)
      if (laboratory ?? onRedis) expect(edits, name).toBeDefined();
  });
});

describe('every mistake has its place also in a library', () => {
  const changed = (change: (source: string, file: string) => [string, string]): Sources =>
    new Map([...LIBRARY].map(([file, source]) => change(source, file)));
  const textsOf = (edited: Sources): string[] => [...edited.values()];
  const inScripts = ({ edits = [] }: Pick<Mistake, 'edits'>): Edit[] =>
    edits.filter((edit) => declarationOf(edit.in, LIBRARY).language === 'Lua');

  const moved = changed((source, file) => [file.replace('/', '/elsewhere/deeper/'), source]);

  it.each(IN_SOURCE)('whose files have moved: $name', ({ name, edits = [] }) => {
    expect(textsOf(place(name, edits, moved))).toEqual(textsOf(place(name, edits, LIBRARY)));
  });

  const formatted = changed((source, file) => [file, printed(source)]);

  it.each(IN_SOURCE)('that is formatted in another way: $name', ({ name, edits = [] }) => {
    const edited = place(name, edits, formatted);
    for (const [file, source] of place(name, edits, LIBRARY)) {
      expect(printed(edited.get(file)!)).toBe(printed(source));
    }
  });

  // The white space of a script is in a text, which a formatter of TypeScript leaves alone.
  const indented = changed((source, file) => [file, source.replaceAll('\n  ', '\n \t -- a word\n     ')]);

  it.each(IN_SOURCE.filter((one) => inScripts(one).length > 0))(
    'with scripts in another format: $name',
    (mistake) => {
      const files = new Set(inScripts(mistake).map((edit) => declarationOf(edit.in, LIBRARY).file));
      expect(place(mistake.name, inScripts(mistake), indented).size).toBe(files.size);
    },
  );
});

describe('a place', () => {
  const sources = (files: Record<string, string>): Sources => new Map(Object.entries(files));
  const placed = (files: Record<string, string>, edit: Edit): string =>
    [...place('a mistake', [edit], sources(files)).values()].join('');

  it('is found in another file, with other white space, commas, quotes and comments', () => {
    const edit = { in: 'Queue.leave', find: "tell('end', this.key); go();", replace: 'go();' };
    const before = "export class Queue { leave(): void { tell('end', this.key); go(); } }";
    const after = `const tell = 1;
      class Queue {
        leave(): void {
          tell(
            // whom?
            "end",
            this.key,
          );
          go();
        }
      }`;
    expect(placed({ 'core/queue.ts': before }, edit)).toBe('export class Queue { leave(): void { go(); } }');
    expect(printed(placed({ 'stores/here/too/other.ts': after }, edit))).toBe(
      printed('const tell = 1; class Queue { leave(): void {\ngo(); } }'),
    );
  });

  it.each([
    ['a function', 'function one() { return here; }', 'one'],
    ['a constant', 'export const one = () => here, two = () => here;', 'one'],
    ['a constructor', 'class A { constructor() { here; } b() { here; } }', 'A.constructor'],
    ['a getter', 'class A { get b() { return here; } c() { here; } }', 'A.b'],
    ['a private member', 'class A { #b() { here; } b() { here; } }', 'A.#b'],
    ['a member that is a function', 'class A { readonly b = () => here; c = () => here; }', 'A.b'],
    ['a script', 'const other = `here`; const SCRIPT = `\n return here -- here\n`;', 'SCRIPT'],
    [
      'a script of several',
      'const SCRIPTS = { a: `here`, b: new Script(`--[ here\nreturn here`) } as const;',
      'SCRIPTS.b',
    ],
    ['a function in an object', 'const all = { a: () => here, b() { return here; } };', 'all.b'],
    ['what is behind a template', 'const a = () => `}${b}//` + here;', 'a'],
    ['what is behind a regular expression', 'const a = () => /["/]/.test(b) && here;', 'a'],
  ])('is in %s', (_, source, name) => {
    const result = placed({ 'core/a.ts': source }, { in: name, find: 'here', replace: 'there' });
    expect(result.match(/\bthere\b/g)).toEqual(['there']);
  });

  it.each([
    ['nothing in lib/core or lib/stores is called gone', { 'core/a.ts': 'const here = 1;' }, 'gone'],
    ['nothing in lib/core or lib/stores is called a', { 'locked/a.ts': 'const a = 1;' }, 'a'],
    [
      'a is in lib/core/a.ts and in lib/stores/b.ts',
      { 'core/a.ts': 'const a = 1;', 'stores/b.ts': 'const a = 1;' },
      'a',
    ],
    ['a in lib/core/a.ts has this 0 times, not once: 1', { 'core/a.ts': 'const a = 2; const b = 1;' }, 'a'],
    ['a in lib/core/a.ts has this 2 times, not once: 1', { 'core/a.ts': 'const a = [1, 1];' }, 'a'],
  ])('that is not there, or not the only one, is named: %s', (message, files, name) => {
    expect(() => placed(files as Record<string, string>, { in: name, find: '1', replace: '2' })).toThrow(
      `"a mistake" has no place in the source: ${message}`,
    );
  });

  it('may be in what another edit replaces only by mistake', () => {
    const edits = [
      { in: 'a', find: '1, 2', replace: '' },
      { in: 'a', find: '2, 3', replace: '' },
    ];
    expect(() => place('a mistake', edits, sources({ 'core/a.ts': 'const a = [1, 2, 3];' }))).toThrow(
      '"a mistake" has no place in the source: two edits overlap in lib/core/a.ts',
    );
  });
});
