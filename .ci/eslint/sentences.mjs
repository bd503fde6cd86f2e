import markdown from '@eslint/markdown';

/** The rules, for messages. */
const RULES = 'see "Words" in CONTRIBUTING.md';

const MAX_WORDS = 30;
const ACTORLESS = 'whoever|who|nobody|somebody|that which|those|one that';
const AT_THE_START = new RegExp(`^(?:${ACTORLESS})\\b`, 'i');
const AFTER_A_PAUSE = new RegExp(`[,:;]\\s+(?:(?:and|or|but|nor|so)\\s+)?(${ACTORLESS})\\b`, 'i');
const AFTER_AND = /\b(?:and|or|but)\s+(one that|who|whoever)\b/i;
const UNWANTED = /\b(whoever|nobody|somebody|for ever|so many|as ever|anew|shall)\b/i;
const EXEMPT = /^(?:What happens|What to do|What you see)\b/;

/** Placeholders for what is no prose. Each counts as one word, and none is a word of the rules. */
const CODE = 'CODE';
const LINK = 'LINK';
const QUOTATION = 'QUOTATION';

const code = /`[^`]*`/g;
const quoted = /"[^"]*"|“[^”]*”/g;
const endOfSentence = /(?<=[.!?][)\]]?)\s+(?=[(*[]?(?:[A-Z0-9"“]|CODE|LINK))/;

const sentencesOf = (text) => {
  const prose = text.replace(code, CODE).replace(quoted, QUOTATION).replace(/\s+/g, ' ').trim();
  return prose === '' ? [] : prose.split(endOfSentence);
};

const faultOf = (sentence) => {
  if (sentence.endsWith('?') || EXEMPT.test(sentence)) return undefined;
  const start = AT_THE_START.exec(sentence)?.[0];
  if (start) return `begins with "${start}"`;
  const subject = (AFTER_A_PAUSE.exec(sentence) ?? AFTER_AND.exec(sentence))?.[1];
  if (subject) return `has the subject "${subject}"`;
  const word = UNWANTED.exec(sentence)?.[1];
  if (word) return `holds "${word}"`;
  const words = sentence.split(' ').filter((one) => /[\p{L}\p{N}]/u.test(one)).length;
  return words > MAX_WORDS ? `has ${words} words, more than ${MAX_WORDS}` : undefined;
};

/**
 * Returns what is wrong with the sentences of a text without markup, as messages.
 *
 * @example faultsOf('Whoever waits is told.') // ['"Whoever waits is told.": begins with "Whoever"; see …']
 */
export const faultsOf = (text) =>
  sentencesOf(text).flatMap((sentence) => {
    const fault = faultOf(sentence);
    return fault ? [`"${sentence}": ${fault}; ${RULES}`] : [];
  });

const PLACEHOLDERS = { inlineCode: CODE, link: LINK, linkReference: LINK };

const proseOf = (node) =>
  PLACEHOLDERS[node.type] ??
  (node.type === 'text'
    ? node.value
    : node.type === 'break'
      ? ' '
      : (node.children ?? []).map(proseOf).join(''));

/**
 * The units of a Markdown tree: paragraphs, list items and table cells, each with its prose and its node. Headings, table
 * headers, code and quotations are none.
 */
const unitsOf = (node) => {
  if (node.type === 'paragraph' || node.type === 'tableCell') return [{ node, text: proseOf(node) }];
  if (['heading', 'blockquote', 'code'].includes(node.type)) return [];
  const children = node.children ?? [];
  return (node.type === 'table' ? children.slice(1) : children).flatMap(unitsOf);
};

/** Returns the faults of a Markdown tree, each with its node. */
export const faultsInTree = (tree) =>
  unitsOf(tree).flatMap(({ node, text }) => faultsOf(text).map((message) => ({ node, message })));

const treeOf = (body) => markdown.languages.gfm.parse({ body, path: 'comment.md' }, {}).ast;

/** A paragraph that lists a script's inputs. */
const INPUTS = /\b(?:KEYS|ARGV)\[/;

/**
 * The lines of a comment, and where a new unit begins: at each tag. Left out are the text after `@throws` and `@example`,
 * until the next tag, and code: indented lines after an empty line.
 */
const proseOfComment = (lines) => {
  let exempt = false;
  let isCode = false;
  return lines.map((line, at) => {
    isCode = /^ {2,}\S/.test(line) && (isCode || (lines[at - 1] ?? '').trim() === '');
    if (isCode) return { line: '', begins: false };
    const tag = /^\s*@(\w+)/.exec(line)?.[1];
    if (tag) exempt = tag === 'throws' || tag === 'example';
    return { line: exempt ? '' : line.replace(/^\s*@(?:param\s+)?\S+/, ''), begins: tag !== undefined };
  });
};

/** Returns the faults of a comment, each with the index of its line. The lines have no markers any more. */
export const faultsInComment = (lines) => {
  const chunks = [];
  proseOfComment(lines).forEach(({ line, begins }, at) => {
    if (begins || chunks.length === 0) chunks.push({ at, lines: [] });
    chunks.at(-1).lines.push(line);
  });
  return chunks.flatMap((chunk) =>
    unitsOf(treeOf(chunk.lines.join('\n')))
      .filter(({ text }) => !INPUTS.test(text))
      .flatMap(({ node, text }) =>
        faultsOf(text).map((message) => ({ line: chunk.at + node.position.start.line - 1, message })),
      ),
  );
};
