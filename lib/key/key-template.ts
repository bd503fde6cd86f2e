import { LockKeyError } from '../core/errors/lock.errors.js';
import { isUnknownHeader, type RequestPathOf } from './client-values.js';
import { describe, elementsOf, keyProblem } from './key-check.js';
import { foreignPlaceholder } from './foreign-syntax.js';
import { formatParameters, placeholderFor, type Parameter } from './parameter-names.js';
import { readProperty } from './read-property.js';
import { renderTemplate, type CompiledTemplate, type ContextLookup, type Root } from './render-template.js';
import { parseTemplate, quoteTemplate, type Placeholder } from './template-syntax.js';

export type { RequestPathOf } from './client-values.js';
export type { ContextLookup } from './render-template.js';

/** Method that a key is for. */
export interface KeySite {
  readonly className: string;
  readonly methodName: string | symbol;
  /** Result of `parameterNames`. If undefined, the names cannot be read, and only `<<0>>` and `<<$name>>` work. */
  readonly parameters: readonly Parameter[] | undefined;
  /** Where the parameters of an HTTP handler come from, to refuse names of headers that no request has. */
  readonly requestPathOf?: RequestPathOf;
}

/** Keys of one method, ready to be rendered for each call. */
export interface CompiledKey {
  /**
   * Returns one key for each template, in order, with duplicates.
   *
   * @param args the arguments of the call
   * @param context source of the values for `<<$name>>`
   * @param requestPathOf where arguments come from; called only for an argument that cannot be part of a key
   * @throws LockKeyError when an argument cannot be part of a key; it never throws anything else
   */
  render(args: readonly unknown[], context?: ContextLookup, requestPathOf?: RequestPathOf): string[];
  /** Placeholders that read no argument: `<<$name>>`. */
  readonly contextPlaceholders: readonly Placeholder[];
}

/**
 * Compiles the key templates of a method. Compile once; rendering is cheap.
 *
 * @throws LockKeyError when a template is malformed, the list is empty, or a name is no parameter
 *
 * @example
 * const site = { className: 'Orders', methodName: 'pay', parameters: [{ name: 'userId', rest: false }] };
 * compileKey('order:<<userId>>', site).render(['a:b']); // ['order:a%3Ab']
 */
export function compileKey(template: string | readonly string[], site: KeySite): CompiledKey {
  const where = `${site.className || '(anonymous class)'}.${String(site.methodName)}`;
  const signature = `${where}${formatParameters(site.parameters)}`;
  const texts = elementsOf(template) ?? [template];
  if (texts.length === 0) {
    throw new LockKeyError(`${signature}: the list of lock keys is empty, so nothing would be locked.`);
  }
  const templates = texts.map((text) => {
    const compiled = compile(text, signature, (placeholder, problem) =>
      argumentRoot(placeholder, site, problem),
    );
    const foreign = foreignPlaceholder(compiled.text, site.parameters ?? []);
    if (foreign !== undefined) throw problemOf(compiled.text, signature)(foreign);
    return { ...compiled, where };
  });
  const placeholders = templates.flatMap(({ slots }) => slots.map(({ placeholder }) => placeholder));
  return {
    contextPlaceholders: placeholders.filter(({ root }) => root.startsWith('$')),
    render: (args, context, requestPathOf) =>
      templates.map((compiled) => renderTemplate(compiled, { args, context, requestPathOf })),
  };
}

/**
 * Renders a key from the properties of an object, exactly as `@Locked` renders it from the arguments of a method. Use
 * it when you acquire the same lock without the decorator, so that values are escaped in the same way.
 *
 * @throws LockKeyError when the template is malformed, `values` lacks a name, or a value cannot be part of a key
 *
 * @example
 * await locks.withLock(lockKey('order:<<userId>>', { userId }), () => pay(userId));
 */
export function lockKey(template: string, values: object): string {
  if (typeof values !== 'object' || values === null) {
    throw new LockKeyError(
      `lockKey: the values must be an object such as { id }, but got ${describe(values)}.`,
    );
  }
  const compiled = compile(template, 'lockKey', ({ root }) => {
    return { read: () => readProperty(values, root) };
  });
  return renderTemplate(compiled, { args: [] });
}

type Problem = (what: string) => LockKeyError;

const problemOf =
  (text: string, where: string): Problem =>
  (what) =>
    new LockKeyError(`${where}: the lock key ${quoteTemplate(text)} ${what}.`, { key: text });

function compile(
  text: unknown,
  where: string,
  rootOf: (placeholder: Placeholder, problem: Problem) => Root,
): CompiledTemplate {
  if (typeof text !== 'string') {
    throw new LockKeyError(`${where}: the lock key must be a string, but it is ${describe(text)}.`);
  }
  const problem = problemOf(text, where);
  const unusable = keyProblem(text);
  if (unusable !== undefined) throw problem(unusable);

  const { literals, placeholders } = parseTemplate(text, problem);
  const slots = placeholders.map((placeholder, i) => ({
    placeholder,
    root: rootOf(placeholder, problem),
    tail: literals[i + 1] ?? '',
  }));
  return { text, where, head: literals[0] ?? '', slots };
}

function argumentRoot(
  placeholder: Placeholder,
  { parameters, requestPathOf }: KeySite,
  problem: Problem,
): Root {
  const { text, root, path, defaultText } = placeholder;
  const argumentAt = (index: number): Root => {
    const whole = [root, ...path].includes('headers') ? requestPathOf?.(index, path) : undefined;
    if (whole && isUnknownHeader(whole)) {
      const [, header = ''] = whole;
      throw problem(
        `has the placeholder ${text}, which never has a value: header names are in lower case. Write ` +
          text.replace(`.${header}`, () => `.${header.toLowerCase()}`),
      );
    }
    return { argument: index, read: ({ args }) => args[index] };
  };
  if (parameters?.some(({ name }) => name !== undefined && name === defaultText)) {
    throw problem(
      `has the placeholder ${text}, whose default is the name of a parameter. A default is literal text, the same in ` +
        `all calls: choose another word, or use a key function`,
    );
  }
  if (root.startsWith('$')) {
    const name = root.slice(1);
    if (name === 'request') throw problem(requestIsAnArgument(placeholder));
    return { read: ({ context }) => context?.(name) };
  }
  if (/^[0-9]/.test(root)) {
    const index = Number(root);
    const isOpenEnded = parameters === undefined || parameters.at(-1)?.rest === true;
    if (!isOpenEnded && index >= parameters.length) {
      throw problem(`has the placeholder ${text}, but the method has only ${parameters.length} parameter(s)`);
    }
    return argumentAt(index);
  }
  if (parameters === undefined) {
    throw problem(
      `has the placeholder ${text}, but the names of the method's parameters cannot be read (another decorator, or ` +
        `Babel for ES5, may hide them). Use an index such as <<0>>, or a key function`,
    );
  }
  const index = parameters.findIndex(({ name }) => name === root);
  if (index === -1) {
    const inside = placeholderFor(root, parameters);
    throw problem(
      inside === undefined
        ? `has the placeholder ${text}, which is no parameter of the method. Use one of its names, an index such ` +
            `as <<0>>, or a key function; a minified bundle keeps no names`
        : `has the placeholder ${text}, which the method takes out of a parameter without a name. Write ` +
            `<<${[inside, ...path].join('.')}>>`,
    );
  }
  // A rest parameter is an array inside the method, so `<<ids.0>>` works, and `<<ids>>` is rejected like any array.
  return parameters[index]?.rest ? { read: ({ args }) => args.slice(index) } : argumentAt(index);
}

/** Decorators of the parts of a request, for messages. */
const PART_DECORATORS: Readonly<Record<string, string>> = {
  headers: '@Headers() headers',
  query: '@Query() query',
  params: '@Param() params',
  body: '@Body() body',
};

/** Returns what to write instead of `<<$request…>>`: a task of a shared queue would find the request of another user. */
const requestIsAnArgument = ({ text, path: [part = ''] }: Placeholder): string => {
  const decorator = Object.hasOwn(PART_DECORATORS, part) ? PART_DECORATORS[part] : undefined;
  const short = decorator && `${decorator} with ${text.replace('$request.', '')}, or `;
  const from = (name: string): string => text.replace('$request', () => name);
  return (
    `has the placeholder ${text}, but a key is made from the arguments of the call. Write ${short ?? ''}@Req() req with ` +
    `${from('req')}; in a GraphQL resolver @Context() ctx with ${from('ctx.req')}. A service gets the value from its caller`
  );
};
