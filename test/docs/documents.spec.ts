import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { deadLinks } from '../support/links.js';
import {
  codeBlocks,
  codeSpans,
  headings,
  links,
  markdownIn,
  readFromRoot,
  section,
  tableRows,
  tables,
} from '../support/markdown.js';
import { FOLDERS, pagesIn } from './pages.js';
import { draw } from './pictures/draw.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAX_LINES_OF_README = 150;

const { scripts, homepage } = JSON.parse(readFromRoot('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly homepage: string;
};

const drawn = [...(await draw())];

const documents = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...['.changeset/README.md', '.ci/README.md', '.github/RELEASING.md', '.github/pull_request_template.md'],
  ...['', 'interop/', 'model/', 'simulation/'].map((folder) => `test/${folder}README.md`),
  'lib/core/kinds/README.md',
  ...markdownIn('docs'),
];

describe('documents', () => {
  it.each(documents)('%s has only links that lead somewhere', (document) => {
    expect(deadLinks(ROOT, document, homepage)).toEqual([]);
  });

  it.each(documents)('%s names only files and npm scripts that exist', (document) => {
    const spans = codeSpans(readFromRoot(document));
    const commands = spans.flatMap((code) =>
      [...code.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!),
    );
    expect(commands.filter((name) => !(name in scripts))).toEqual([]);
    const paths = spans.filter((code) => /^(lib|test|sample-app|docs|\.ci)\/[\w./-]*$/.test(code));
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('keeps the README to what everybody reads', () => {
    expect(readFromRoot('README.md').trim().split('\n').length).toBeLessThanOrEqual(MAX_LINES_OF_README);
  });
});

describe.each(['README.md', 'README.zh-CN.md'])('%s', (page) => {
  it('has no badge and no link that waits for the owner of the repository', () => {
    expect(readFromRoot(page).match(/\S*\bOWNER\b\S*/g) ?? []).toEqual([]);
  });
});

describe('the README in Chinese', () => {
  const [english, chinese] = ['README.md', 'README.zh-CN.md'].map((path) => readFromRoot(path)) as [
    string,
    string,
  ];

  it('has the examples, the options with their defaults, and the links of the English one', () => {
    for (const language of ['ts', 'sh'])
      expect(codeBlocks(chinese, language)).toEqual(codeBlocks(english, language));
    const names = (cell: string) => [...codeSpans(cell), ...(cell.match(/\d[\d,]*/g) ?? [])];
    const firstCells = (text: string) =>
      tables(text).map(({ rows }) => rows.map((cells) => cells.slice(0, 2).flatMap(names)));
    expect(firstCells(chinese)).toEqual(firstCells(english));
    const pagesLinked = (text: string) => new Set(links(text).filter((link) => !link.startsWith('README')));
    expect(pagesLinked(chinese)).toEqual(pagesLinked(english));
  });
});

describe('pictures', () => {
  const pages = markdownIn('docs').map(readFromRoot).join('\n');

  it.each(drawn)('%s is what `npm run docs:pictures` draws, and stands on a page', (file, svg) => {
    expect(readFromRoot(`docs/pictures/${file}`)).toBe(svg);
    expect(pages).toContain(`pictures/${file})`);
  });
});

describe('pages', () => {
  const index = readFromRoot('docs/README.md');
  const rules = readFromRoot('CONTRIBUTING.md');
  /** The headings that CONTRIBUTING.md gives the pages of a folder. */
  const headingsFor = (folder: string): string[] => {
    const [, rule = ''] = section(rules, 'Pages').split(`Pages in \`${folder}/\` have these`);
    return [...rule.split(/\.\s/)[0]!.matchAll(/"([^"]+)"/g)].map(([, heading]) => heading!);
  };
  const pages = FOLDERS.flatMap((folder) =>
    pagesIn(folder).map(({ path, text }) => ({ folder, path, text })),
  );

  it.each(pages)('$path begins with its title and a paragraph, and stands in the index', ({ path, text }) => {
    expect(text).toMatch(/^# .+\n\n(?!#|\||- |```)/);
    // The address of a page that is not packed.
    const linked = links(index).map((link) => link.replace(/^https:.*\/blob\/main\/docs\//, ''));
    expect(linked).toContain(relative('docs', path));
  });

  it.each(
    pages.filter(
      ({ folder, path }) => headingsFor(folder).length > 0 && !path.endsWith('writing-a-store.md'),
    ),
  )('$path has the headings of its folder', ({ folder, text }) => {
    expect(headings(text)).toEqual(headingsFor(folder));
  });

  it.each(['locks', 'stores'])('docs/%s has its own headings', (folder) => {
    expect(headingsFor(folder).length).toBeGreaterThan(5);
  });

  it.each(pages.filter(({ folder }) => folder !== 'locks' && folder !== 'stores'))(
    '$path ends with what to see also',
    ({ text }) => {
      expect(headings(text).at(-1)).toBe('See also');
    },
  );
});

describe('decisions', () => {
  const decisions = readdirSync(join(ROOT, 'docs/decisions'))
    .filter((name) => name !== 'README.md')
    .sort();
  const textOf = (name: string): string => readFromRoot(`docs/decisions/${name}`);
  const rows = tableRows(readFromRoot('docs/decisions/README.md'));

  it('have a number each, a context, a decision and its consequences', () => {
    expect(decisions.map((name) => Number(name.slice(0, 4)))).toEqual(decisions.map((_, at) => at + 1));
    for (const name of decisions) {
      for (const heading of ['Context', 'Decision', 'Consequences'])
        expect.soft(textOf(name), name).toContain(`\n## ${heading}\n`);
    }
  });

  it('have an index: each one under its title, with its dates and its status', () => {
    const titles = decisions.map((name) => {
      const [title = ''] = textOf(name).split('\n');
      return `[${title.replace('# ', '')}](${name})`;
    });
    expect(rows.map(([title]) => title)).toEqual(titles);
    const date = expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as unknown;
    for (const row of rows) {
      expect.soft(row).toEqual([row[0], date, date, expect.stringMatching(/^(in force|superseded by)/)]);
      expect.soft(row[1]! <= row[2]!, row[0]).toBe(true);
    }
  });

  it('say themselves which other decision the index names in their status, and the other way round', () => {
    decisions.forEach((name, at) => {
      const inIndex = (rows[at]![3]!.match(/\d+/g) ?? []).map((number) => decisions[Number(number) - 1]);
      const [, status = ''] = textOf(name).split('\n\n');
      expect.soft(status.startsWith('Status: ') ? links(status) : [], name).toEqual(inIndex);
    });
  });
});
