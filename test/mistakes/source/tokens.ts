import ts from 'typescript';

/** One word of a source, and where it is. */
export interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const { SyntaxKind } = ts;

/** After these a slash divides; after anything else it begins a regular expression. */
const divides = (before: ts.SyntaxKind): boolean =>
  [
    SyntaxKind.CloseParenToken,
    SyntaxKind.CloseBracketToken,
    SyntaxKind.NumericLiteral,
    SyntaxKind.ThisKeyword,
    SyntaxKind.Identifier,
  ].includes(before);

/** Formatting adds a comma after the last of a list, and takes it away. */
const withoutTrailingCommas = (tokens: readonly Token[]): Token[] =>
  tokens.filter(({ text }, i) => text !== ',' || !/^[)\]}]$/.test(tokens[i + 1]?.text ?? ''));

const TEMPLATE_PARTS = new Set([
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateHead,
  SyntaxKind.TemplateMiddle,
  SyntaxKind.TemplateTail,
]);

/** The words of a piece of a template, such as a statement of SQL, and its delimiters, each character of them. */
const tokensOfTemplate = (text: string, start: number): Token[] => {
  const end = text.length - (text.endsWith('${') ? 2 : 1);
  const delimiters = (from: number, to: number): Token[] =>
    [...text.slice(from, to)].map((one, i) => ({ text: one, start: from + i, end: from + i + 1 }));
  const words = tokensOfTypeScript(text.slice(1, end)).map((one) => ({
    ...one,
    start: one.start + 1,
    end: one.end + 1,
  }));
  return [...delimiters(0, 1), ...words, ...delimiters(end, text.length)].map((one) => ({
    ...one,
    start: start + one.start,
    end: start + one.end,
  }));
};

/** The tokens of TypeScript, or of a piece of it. */
export function tokensOfTypeScript(source: string): Token[] {
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, true, ts.LanguageVariant.Standard, source);
  const tokens: Token[] = [];
  // For each template that the scanner is in, how many braces are open since its last `${`.
  const templates: number[] = [];
  let before = SyntaxKind.Unknown;
  for (let kind = scanner.scan(); kind !== SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (kind === SyntaxKind.SlashToken && !divides(before)) kind = scanner.reScanSlashToken();
    if (kind === SyntaxKind.CloseBraceToken && templates.at(-1) === 0) {
      kind = scanner.reScanTemplateToken(false);
      if (kind === SyntaxKind.TemplateTail) templates.pop();
    } else if (kind === SyntaxKind.TemplateHead) templates.push(0);
    else if (kind === SyntaxKind.OpenBraceToken && templates.length > 0) templates[templates.length - 1]!++;
    else if (kind === SyntaxKind.CloseBraceToken && templates.length > 0) templates[templates.length - 1]!--;
    // Which quotes a string has is a matter of format.
    const text =
      kind === SyntaxKind.StringLiteral ? JSON.stringify(scanner.getTokenValue()) : scanner.getTokenText();
    const [start, end] = [scanner.getTokenStart(), scanner.getTokenEnd()];
    tokens.push(...(TEMPLATE_PARTS.has(kind) ? tokensOfTemplate(text, start) : [{ text, start, end }]));
    before = kind;
  }
  return withoutTrailingCommas(tokens);
}

/** The tokens of a script in Lua, or of a piece of it. */
export const tokensOfLua = (source: string): Token[] =>
  [...source.matchAll(/--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\w+|[^\s\w]/g)]
    .filter(([text]) => !text.startsWith('--'))
    .map(({ 0: text, index }) => ({ text, start: index, end: index + text.length }));
