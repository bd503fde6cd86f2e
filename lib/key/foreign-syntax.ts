import { placeholderFor, type Parameter } from './parameter-names.js';
import { quoteTemplate } from './template-syntax.js';

const NAME = String.raw`([\p{ID_Start}_][\p{ID_Continue}$]*)`;
const PATH = String.raw`((?:\??\.[\p{ID_Continue}$-]+)*)`;
const OPENING = String.raw`[<$[({#@%&*~^|!?"'\x60«‹\\]+=?\s*`;
const CLOSING = String.raw`\s*[>$\])}#@%&*~^|!?"'\x60»›]+`;

/**
 * Placeholders of JavaScript and of other libraries: `${id}` in plain quotes, `{id}`, `#id`, `:id`, `<id>`, `$id`,
 * `[id]`, `%id%` and similar.
 */
const FOREIGN = new RegExp(`(?:(${OPENING})|(?<=:))${NAME}${PATH}(?:${CLOSING})?`, 'gu');
const WHOLE = new RegExp(`^${NAME}${PATH}$`, 'u');
const OURS = /(<<.*?>>)/s;

/**
 * Returns what is wrong with a template that contains a parameter's name in the syntax of another library, or is only
 * such a name. Taken literally, it would be one lock for all values. In a template that has a `<<placeholder>>`, only
 * an opening `<` or `$` is a mistake: a word such as `:status` can be literal text there.
 */
export const foreignPlaceholder = (
  template: string,
  parameters: readonly Parameter[],
): string | undefined => {
  const [, name = '', path = ''] = WHOLE.exec(template) ?? [];
  const whole = placeholderFor(name, parameters);
  if (whole !== undefined) {
    return (
      `is a parameter's name and no placeholder. For one lock for each value write ` +
      `${quoteTemplate(`<<${whole}${withoutOptional(path)}>>`)}; for one lock for all calls write ` +
      `() => ${quoteTemplate(template)}`
    );
  }
  const parts = template.split(OURS);
  const hasOurs = parts.length > 1;
  let found: string | undefined;
  const replaceForeign = (literal: string): string =>
    literal.replace(FOREIGN, (text: string, opened: string | undefined, name: string, path: string) => {
      const opening = opened ?? '';
      const meant = hasOurs && !/[<$]/.test(opening) ? undefined : rootFor(opening, name, parameters);
      if (meant === undefined) return text;
      found ??= opening === '' ? `:${text}` : text;
      return `<<${meant}${withoutOptional(path)}>>`;
    });
  const corrected = parts.map((part, i) => (i % 2 === 0 ? replaceForeign(part) : part)).join('');
  return found === undefined
    ? undefined
    : `has ${found} in it, which is no placeholder here, so ${hasOurs ? 'calls that differ in it' : 'all calls'} would share ` +
        `one lock. Write ${quoteTemplate(corrected)}; if the text is meant as it is, give it as a function: ` +
        `() => ${quoteTemplate(template)}`;
};

const withoutOptional = (path: string): string => path.replaceAll('?', '');

/** Returns the root of the intended placeholder: `id` for `__id__`, `<<$tenant>>` for `<$tenant>`. */
const rootFor = (opening: string, name: string, parameters: readonly Parameter[]): string | undefined => {
  return (
    placeholderFor(name, parameters) ??
    placeholderFor(name.replace(/^_+|_+$/g, ''), parameters) ??
    // The request is an argument of the call: the error for `req` says so.
    (opening.endsWith('$') && name === 'request' ? 'req' : undefined) ??
    (/[<{[(]\$$/.test(opening) ? `$${name}` : undefined)
  );
};
