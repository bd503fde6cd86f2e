// ESLint rules for the language of comments, test titles and Markdown. What they look for is in sentences.mjs.
import { faultsInComment, faultsInTree, faultsOf } from './sentences.mjs';

const TESTS = new Set(['it', 'test', 'describe']);

const rule = (language, create) => ({ meta: { type: 'suggestion', schema: [], language }, create });

const report = (context, line, message) =>
  context.report({ loc: { start: { line, column: 0 }, end: { line, column: 1 } }, message });

/** Comments as lists of lines without markers. Line comments that follow each other are one comment. */
const commentsOf = (sourceCode) => {
  const comments = [];
  for (const { type, value, loc } of sourceCode.getAllComments()) {
    if (type === 'Shebang') continue;
    const block = type === 'Block';
    const lines = block ? value.split('\n').map((line) => line.replace(/^\s*\*+ ?/, '')) : [value.slice(1)];
    const last = comments.at(-1);
    const follows =
      !block && last && !last.block && last.column === loc.start.column && last.end + 1 === loc.start.line;
    if (follows) {
      last.lines.push(...lines);
      last.end = loc.end.line;
    } else {
      comments.push({ block, start: loc.start.line, column: loc.start.column, end: loc.end.line, lines });
    }
  }
  return comments;
};

/** Comments of Lua in a template string: lines that begin with two hyphens. */
const luaCommentsOf = ({ value, loc }) => {
  const comments = [];
  value.raw.split('\n').forEach((line, at) => {
    const [, comment] = /^\s*-- (.*)$/.exec(line) ?? [];
    if (comment === undefined) return;
    const last = comments.at(-1);
    if (last && last.start + last.lines.length === loc.start.line + at) last.lines.push(comment);
    else comments.push({ start: loc.start.line + at, lines: [comment] });
  });
  return comments;
};

const checkComment = (context, { start, lines }) => {
  for (const { line, message } of faultsInComment(lines)) report(context, start + line, message);
};

const nameOfCallee = (callee) => {
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'MemberExpression') return nameOfCallee(callee.object);
  if (callee.type === 'CallExpression') return nameOfCallee(callee.callee);
  return undefined;
};

const titleOf = (node) => {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked).join('CODE');
  return undefined;
};

export default {
  rules: {
    comments: rule(undefined, (context) => ({
      Program: () => {
        for (const comment of commentsOf(context.sourceCode)) checkComment(context, comment);
      },
      TemplateElement: (node) => {
        for (const comment of luaCommentsOf(node)) checkComment(context, comment);
      },
    })),
    'test-titles': rule(undefined, (context) => ({
      CallExpression: ({ callee, arguments: [first] }) => {
        const title = titleOf(first);
        if (title === undefined || !TESTS.has(nameOfCallee(callee))) return;
        for (const message of faultsOf(title)) context.report({ node: first, message });
      },
    })),
    markdown: rule('markdown', (context) => ({
      root: (root) => {
        for (const { node, message } of faultsInTree(root)) context.report({ node, message });
      },
    })),
  },
};
