import markdown from '@eslint/markdown';
import { Linter } from 'eslint';
import { describe, expect, it } from 'vitest';
import plain from '../../.ci/eslint/plain-sentences.mjs';

const linter = new Linter();

const CONFIG: Linter.Config[] = [
  {
    files: ['**/*.js'],
    plugins: { plain },
    rules: { 'plain/comments': 'error', 'plain/test-titles': 'error' },
  },
  {
    files: ['**/*.md'],
    plugins: { plain, markdown },
    language: 'markdown/gfm',
    rules: { 'plain/markdown': 'error' },
  },
];

/** The faults that the lint finds in a file, each with its line. */
const faultsIn = (file: 'a.js' | 'a.md', text: string): string[] =>
  linter.verify(text, CONFIG, file).map(({ line, message }) => `${line}: ${message}`);

const words = (count: number): string => `Holds ${'key '.repeat(count - 1).trim()}.`;

const BAD: readonly (readonly [sentence: string, fault: string])[] = [
  ...['Who', 'Whoever', 'Nobody', 'Somebody', 'That which', 'Those', 'One that'].map(
    (subject) => [`${subject} waits.`, `begins with "${subject}"`] as const,
  ),
  ['The lock is free, who waits gets it.', 'has the subject "who"'],
  ['The lock is free: nobody holds it.', 'has the subject "nobody"'],
  ['The store renews it; those of others end.', 'has the subject "those"'],
  ['A lease of the caller, and one that others share.', 'has the subject "one that"'],
  ['A holder and whoever waits.', 'has the subject "whoever"'],
  ...['whoever', 'nobody', 'somebody', 'for ever', 'so many', 'as ever', 'anew', 'shall'].map(
    (word) => [`The caller waits ${word} here.`, `holds "${word}"`] as const,
  ),
  [words(31), 'has 31 words, more than 30'],
];

const GOOD: readonly string[] = [
  'The caller that holds the lock releases it.',
  'Who holds the lock?',
  'What happens when nobody waits: nothing.',
  'What to do: ask whoever runs the server.',
  'What you see: somebody else has it.',
  'The log says "nobody holds it".',
  '`nobody` is the name of a user, and `who` is a command.',
  words(30),
  `${words(20)} ${words(20)}`,
  `Calls \`${'a '.repeat(40).trim()}\`.`,
];

describe('the lint of sentences', () => {
  it.each(BAD)('finds in a comment that "%s" %s', (sentence, fault) => {
    const message = `"${sentence}": ${fault}; see "Words" in CONTRIBUTING.md`;
    expect(faultsIn('a.js', `// A comment.\n//\n// ${sentence}\n`)).toEqual([`3: ${message}`]);
    expect(faultsIn('a.js', `/**\n * A docstring.\n *\n * ${sentence}\n */\n`)).toEqual([`4: ${message}`]);
    expect(faultsIn('a.md', `# A page\n\n${sentence}\n`)).toEqual([`3: ${message}`]);
    expect(faultsIn('a.js', `it(${JSON.stringify(sentence)}, () => {});\n`)).toEqual([`1: ${message}`]);
  });

  it.each(GOOD)('lets a comment, a title and a paragraph say: %s', (sentence) => {
    expect(faultsIn('a.js', `/** ${sentence} */\n// ${sentence}\nit(${JSON.stringify(sentence)});`)).toEqual(
      [],
    );
    expect(faultsIn('a.md', `${sentence}\n`)).toEqual([]);
  });

  it('finds a sentence that goes over several lines of comments', () => {
    expect(faultsIn('a.js', 'let a;\n// The lock is free,\n// who waits gets it.\n')).toHaveLength(1);
  });

  it('finds a sentence in a comment of a script', () => {
    expect(faultsIn('a.js', 'const SCRIPT = `\nlocal a\n-- Nobody waits.\nreturn 1\n`;')).toEqual([
      expect.stringContaining('3: "Nobody waits.": begins with "Nobody"'),
    ]);
  });

  it('looks at titles of describe, and of tests with a table', () => {
    const code = "describe('nobody', () => {\n  it.each([1])('who waits', () => {});\n});";
    expect(faultsIn('a.js', code)).toHaveLength(2);
    expect(faultsIn('a.js', "print('who waits');")).toEqual([]);
  });

  it('leaves out the inputs of scripts, errors, examples and code of comments', () => {
    const comment = [
      '/**',
      ' * Acquires.',
      ' *',
      ' * KEYS[1] the key of whoever waits',
      ' *',
      ' * @throws when nobody answers',
      ' * @example',
      ' * nobody();',
      ' */',
      '//',
      '//   node nobody.mjs',
    ];
    expect(faultsIn('a.js', comment.join('\n'))).toEqual([]);
    expect(faultsIn('a.js', '/**\n * Acquires.\n * @returns what nobody has\n */')).toHaveLength(1);
  });

  it('takes list items and cells of tables as units, and leaves out headings and heads of tables', () => {
    const list = `- ${words(20).slice(0, -1)}\n- ${words(20).slice(0, -1)}\n`;
    const table = `| who | nobody |\n| --- | --- |\n| ${words(20)} | ${words(20)} |\n`;
    expect(faultsIn('a.md', `# Who waits\n\n${list}\n${table}`)).toEqual([]);
    expect(faultsIn('a.md', '| a |\n| --- |\n| who waits |\n')).toHaveLength(1);
  });

  it('leaves out links, code and quotations of Markdown', () => {
    expect(faultsIn('a.md', '[Who gets it next](a.md) says it.\n\n```\nnobody\n```\n\n> Nobody.\n')).toEqual(
      [],
    );
  });
});
