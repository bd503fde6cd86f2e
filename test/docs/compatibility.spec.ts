import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { readFromRoot, tables } from '../support/markdown.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGE = 'docs/redisson-compatibility.md';

/** A test that a row names: where it is, and its title. */
const NAMED = /`(test\/[^`]+)`: "([^"]+)"/g;
const namedIn = (cell: string): { file: string; title: string }[] =>
  [...cell.matchAll(NAMED)].map(([, file, title]) => ({ file: file!, title: title! }));

const NAMES = ['it', 'it.each', 'also', 'also.each', 'besideNewest'];

/** The titles of the tests of a file, as they stand in it. */
const titlesOf = (file: string): Set<string> => {
  const source = ts.createSourceFile(file, readFromRoot(file), ts.ScriptTarget.Latest);
  const titles = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const [first] = node.arguments;
      // `it('…')`, `it.each(…)('…')`, and `also('…')` of what runs beside one of several versions.
      const called = ts.isCallExpression(node.expression) ? node.expression.expression : node.expression;
      const name = called.getText(source);
      if (NAMES.includes(name) && first && ts.isStringLiteralLike(first)) {
        titles.add(first.text);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return titles;
};

const rows = tables(readFromRoot(PAGE)).flatMap(({ head, rows: all }) => (head.length === 3 ? all : []));
const byFile = new Map<string, Set<string>>();
for (const [, , here = ''] of rows) {
  for (const { file, title } of namedIn(here)) byFile.set(file, (byFile.get(file) ?? new Set()).add(title));
}

describe('the table of others’ tests', () => {
  it('has rows, and each names a public test and what there is here', () => {
    expect(rows.length).toBeGreaterThan(80);
    for (const [behaviour, theirs, here] of rows) {
      expect.soft(theirs, behaviour).toMatch(/`\w+/);
      expect.soft(here, behaviour).toMatch(/^(`test\/[^`]+`: "|does not apply: .{10})/);
    }
  });

  it('names nothing else in place of a test', () => {
    for (const [behaviour, , here = ''] of rows) {
      const rest = here.replaceAll(NAMED, '').replaceAll(/[ ·]/g, '');
      if (!here.startsWith('does not apply: ')) expect.soft(rest, behaviour).toBe('');
    }
  });

  it.each([...byFile.keys()])('%s has the tests that are named', (file) => {
    expect(existsSync(`${ROOT}${file}`), file).toBe(true);
    const titles = titlesOf(file);
    expect([...byFile.get(file)!].filter((title) => !titles.has(title))).toEqual([]);
  });
});
