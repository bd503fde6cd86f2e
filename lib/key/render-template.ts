import { LockKeyError } from '../core/errors/lock.errors.js';
import { isFromClient, type RequestPathOf } from './client-values.js';
import { escapeValue } from './escape.js';
import { describe, keyProblem } from './key-check.js';
import { MISSING, readProperty } from './read-property.js';
import { quoteTemplate, type Placeholder } from './template-syntax.js';

/** Returns the value of `<<$name>>`, called with `name` without the `$`; undefined without a value. */
export type ContextLookup = (name: string) => unknown;

/** Sources of the values of one call. */
export interface Sources {
  readonly args: readonly unknown[];
  readonly context?: ContextLookup | undefined;
  readonly requestPathOf?: RequestPathOf | undefined;
}

/** Source of the first name of a placeholder. */
export interface Root {
  /** Index of the argument; undefined for anything else, and for a rest parameter. */
  readonly argument?: number;
  /** Returns its value; MISSING when nothing has that name. */
  read(sources: Sources): unknown;
}

export interface Slot {
  readonly placeholder: Placeholder;
  readonly root: Root;
  /** Literal text after the placeholder. */
  readonly tail: string;
}

export interface CompiledTemplate {
  /** The template as written. */
  readonly text: string;
  /** Caller for messages: `OrderService.pay`. */
  readonly where: string;
  /** Literal text before the first placeholder. */
  readonly head: string;
  readonly slots: readonly Slot[];
}

/** What is known about a mistake in a value. */
interface Mistake {
  readonly cause?: unknown;
  /** Number of the path's names that could be read; undefined when the client cannot have caused the mistake. */
  readonly depth?: number;
}

type Failure = (what: string, slot: Slot, mistake?: Mistake) => LockKeyError;

/** Renders one key. Throws `LockKeyError` only, whatever the arguments do when they are read. */
export function renderTemplate(template: CompiledTemplate, sources: Sources): string {
  const failure: Failure = (what, { placeholder, root }, { depth, ...cause } = {}) =>
    new LockKeyError(`${template.where}: no lock key from ${quoteTemplate(template.text)}: ${what}.`, {
      key: template.text,
      ...(depth !== undefined &&
        isFromClient(placeholder, root.argument, depth, sources.requestPathOf) && {
          clientPlaceholder: `<<${[placeholder.root, ...placeholder.path].join('.')}>>`,
        }),
      ...cause,
    });
  let key = template.head;
  let longest: Slot | undefined;
  let length = 0;
  for (const slot of template.slots) {
    const text = valueText(slot, readValue(slot, sources, failure), failure);
    if (text.length > length) [longest, length] = [slot, text.length];
    key += text + slot.tail;
  }
  const problem = keyProblem(key);
  // Only its values can make a template too long that was checked before.
  if (problem !== undefined)
    throw failure(`the rendered key ${problem}`, longest!, { depth: longest!.placeholder.path.length });
  return key;
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === MISSING;

/** Returns the value of a placeholder. The default also stands for what lies inside of an absent value. */
function readValue(slot: Slot, sources: Sources, failure: Failure): unknown {
  const { text, root, path, defaultText } = slot.placeholder;
  let value = attempt(() => slot.root.read(sources), slot, failure);
  if (value === MISSING && defaultText === undefined)
    throw failure(`there is no ${root} in the values given`, slot);
  for (const [depth, name] of path.entries()) {
    if (defaultText !== undefined && isAbsent(value)) return defaultText;
    const holder = value;
    const holderName = () => `${[root, ...path.slice(0, depth)].join('.')} in ${text}`;
    if (typeof holder !== 'object' || holder === null) {
      throw failure(
        `${holderName()} is ${describe(holder)}, so it has no ${name} to read${contextHint(root, holder)}${defaultHint(text, holder)}`,
        slot,
        { depth },
      );
    }
    value = attempt(() => readProperty(holder, name), slot, failure);
    if (value === MISSING && defaultText === undefined) {
      throw failure(
        `${holderName()} has no ${name}. Own properties and getters of the object's class are read; inherited ` +
          `methods and what JavaScript itself defines are not`,
        slot,
        { depth },
      );
    }
  }
  return defaultText !== undefined && (isAbsent(value) || value === '') ? defaultText : value;
}

function attempt(read: () => unknown, slot: Slot, failure: Failure): unknown {
  try {
    return read();
  } catch (cause) {
    throw failure(`reading ${slot.placeholder.text} threw an error (see cause)`, slot, { cause });
  }
}

function valueText(slot: Slot, value: unknown, failure: Failure): string {
  const { text, path } = slot.placeholder;
  const mistake: Mistake = { depth: path.length };
  if (typeof value === 'string' && value !== '') {
    const escaped = escapeValue(value);
    if (escaped !== undefined) return escaped;
    throw failure(
      `${text} has half a surrogate pair in it (broken UTF-16), which UTF-8 cannot carry`,
      slot,
      mistake,
    );
  }
  if (Number.isFinite(value) || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  const advice = remedy(slot.placeholder, value) + defaultHint(text, value);
  throw failure(`${text} is ${describe(value)}. ${advice}`, slot, mistake);
}

function remedy({ root, path }: Placeholder, value: unknown): string {
  const allowed = 'A value must be a string that is not empty, a finite number, a bigint or a boolean';
  if (value === undefined) {
    return `${allowed}${contextHint(root, value) || '; defaults of parameters are not applied yet when the key is made'}`;
  }
  if (typeof value !== 'object' || value === null) return allowed;
  const property = exampleProperty(value);
  const longer =
    property && `name ${property.kind} of it, such as <<${[root, ...path, property.name].join('.')}>>, or `;
  return `${allowed}: ${longer ?? ''}use a key function with lockKey`;
}

/**
 * Returns an example of a path into an object; undefined for an object without own properties (a Date, a Set, a class
 * with getters).
 */
function exampleProperty(value: object): { kind: string; name: string } | undefined {
  if (describe(value) === 'an array') return { kind: 'an element', name: '0' };
  try {
    return Object.keys(value).length > 0 ? { kind: 'a property', name: 'id' } : undefined;
  } catch {
    return undefined; // a Proxy that throws: a path would fail as well
  }
}

const defaultHint = (text: string, value: unknown): string =>
  isAbsent(value) || value === '' ? `; ${text.replace('>>', '|none>>')} has a default` : '';

const contextHint = (root: string, value: unknown): string =>
  root.startsWith('$') && value === undefined ? `; $names come from the module's context option` : '';
