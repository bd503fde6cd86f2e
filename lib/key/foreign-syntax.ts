import { placeholderFor, type Parameter } from './parameter-names.js';
import { quoteTemplate } from './template-syntax.js';

const NAME = String.raw`[\p{ID_Start}_$][\p{ID_Continue}$]*`;
const PATH = String.raw`((?:\??\.[\p{ID_Continue}$-]+)*)`;

/** `${id}` in plain quotes, `{id}`, `#{id}`, `#id`, `:id`: placeholders of JavaScript and of other libraries. */
const FOREIGN = new RegExp(String.raw`[$#]?\{\s*(${NAME})${PATH}\s*\}|[#:](?!\$\{)(${NAME})${PATH}`, 'gu');

/**
 * What is wrong with a template that has no placeholder of ours, but a parameter's name in the syntax of another
 * library: taken literally it would be one lock for all values. Undefined when nothing is.
 */
export const foreignPlaceholder = (
  template: string,
  parameters: readonly Parameter[],
): string | undefined => {
  let found: string | undefined;
  const meant = template.replace(
    FOREIGN,
    (text: string, braced: string | undefined, bracedPath: string, plain: string, plainPath: string) => {
      const placeholder = placeholderFor(braced ?? plain, parameters);
      if (placeholder === undefined) return text;
      found ??= text;
      const path = (braced === undefined ? plainPath : bracedPath).replaceAll('?', '');
      // A colon separates the parts of a key, so it stays.
      return `${text.startsWith(':') ? ':' : ''}<<${placeholder}${path}>>`;
    },
  );
  return found === undefined
    ? undefined
    : `has ${found} in it, which is no placeholder here, so all calls would share one lock. Write ` +
        `${quoteTemplate(meant)}; if the text is meant as it is, give it as a function: () => ${quoteTemplate(template)}`;
};
