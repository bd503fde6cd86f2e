import type { LockKeyError } from '../core/errors/lock.errors.js';

/** One `<<root.path>>` or `<<root.path|default>>` of a template. */
export interface Placeholder {
  /** As written, with its brackets. */
  readonly text: string;
  /** A parameter name, a decimal index, or `$name`. */
  readonly root: string;
  readonly path: readonly string[];
  /** Text that stands for undefined, null and the empty string; undefined without a default. */
  readonly defaultText: string | undefined;
}

/** Parts of a template: `literals[0] placeholders[0] literals[1] …`, with one literal more than placeholders. */
export interface TemplateSyntax {
  readonly literals: readonly string[];
  readonly placeholders: readonly Placeholder[];
}

const ROOT = /^(?:0|[1-9][0-9]{0,5}|[\p{ID_Start}_$][\p{ID_Continue}$]*)$/u;
// Also matches header names and other keys of plain data: `<<headers.x-tenant-id>>`.
const SEGMENT = /^[\p{ID_Continue}$-]+$/u;

/**
 * Splits a template that is known to be a valid key; `problem` creates the error.
 *
 * Every literal between two placeholders must contain `:`. That is enough for different rendered values to give
 * different keys. Proof, for one template:
 * - A rendered value contains no `:`, because it is escaped. So the n-th `:` of the key is the n-th `:` of the
 *   literals.
 * - The first value starts where the first literal ends.
 * - The first `:` after that is at a known place in the second literal. It shows where the first value ends and the
 *   next one begins, and so on.
 * - The last value ends where the last literal begins, counted from the end.
 *
 * So the key gives every rendered value back, whatever else the literals contain: `a<<x>>:b<<y>>`, `{<<x>>}`, `<<x>>b`.
 */
export function parseTemplate(template: string, problem: (text: string) => LockKeyError): TemplateSyntax {
  const literals: string[] = [];
  const placeholders: Placeholder[] = [];
  let from = 0;
  for (;;) {
    const open = template.indexOf('<<', from);
    const literal = open === -1 ? template.slice(from) : template.slice(from, open);
    if (literal.includes('>>')) throw problem(`has a '>>' without a '<<' before it`);
    literals.push(literal);
    if (open === -1) return { literals, placeholders };

    const previous = placeholders.at(-1);
    const close = template.indexOf('>>', open);
    if (close === -1) throw problem(`has a '<<' without a '>>' after it`);
    const placeholder = parsePlaceholder(template.slice(open, close + 2), problem);
    if (previous && !literal.includes(':')) {
      throw problem(
        `has no ':' between ${previous.text} and ${placeholder.text}, so different arguments could share a key. ` +
          `Write ${previous.text}:${placeholder.text}`,
      );
    }
    placeholders.push(placeholder);
    from = close + 2;
  }
}

function parsePlaceholder(text: string, problem: (text: string) => LockKeyError): Placeholder {
  const inner = text.slice(2, -2);
  if (inner === '') throw problem('has an empty placeholder <<>>');
  const bar = inner.indexOf('|');
  const [root = '', ...path] = (bar === -1 ? inner : inner.slice(0, bar)).split('.');
  if (!ROOT.test(root) || root === '$' || !path.every((segment) => SEGMENT.test(segment))) {
    throw problem(
      `has the placeholder ${text}, which is no path. Paths look like <<userId>>, <<cart.owner.id>>, <<0>>, ` +
        `<<1.user.id>>, <<items.0.sku>> or <<$tenant.id>>, without spaces`,
    );
  }
  return {
    text,
    root,
    path,
    defaultText: bar === -1 ? undefined : checkDefault(text, inner.slice(bar + 1), problem),
  };
}

/** Returns the default of a placeholder. A `>>` in it has ended the placeholder already. */
function checkDefault(text: string, given: string, problem: (text: string) => LockKeyError): string {
  const wrong = given === '' ? 'nothing' : ['<<', '|', ':'].find((sign) => given.includes(sign));
  if (wrong === undefined) return given;
  throw problem(
    `has the placeholder ${text} with ${wrong === 'nothing' ? wrong : `'${wrong}'`} after the '|'. A default is literal ` +
      `text without '<<', '>>', '|' and ':', as in <<userId|none>>`,
  );
}

export const quoteTemplate = (template: string): string =>
  JSON.stringify(template.length > 200 ? `${template.slice(0, 200)}…` : template);
