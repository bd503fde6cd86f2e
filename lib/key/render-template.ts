import { LockKeyError } from '../core/errors/lock.errors.js';
import { escapeValue } from './escape.js';
import { describe, keyProblem } from './key-check.js';
import { MISSING, readProperty } from './read-property.js';
import { quoteTemplate, type Placeholder } from './template-syntax.js';

/** Returns the value of `<<$name>>`, called with `name` without the `$`; undefined without a value. */
export type ContextLookup = (name: string) => unknown;

/** Returns the root value of a placeholder; MISSING when nothing has that name. */
export type RootReader = (args: readonly unknown[], context: ContextLookup | undefined) => unknown;

export interface Slot {
  readonly placeholder: Placeholder;
  readonly readRoot: RootReader;
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

type Failure = (what: string, cause?: { cause: unknown }) => LockKeyError;

/** Renders one key. Throws `LockKeyError` only, whatever the arguments do when they are read. */
export function renderTemplate(
  template: CompiledTemplate,
  args: readonly unknown[],
  context: ContextLookup | undefined,
): string {
  const failure: Failure = (what, cause) =>
    new LockKeyError(`${template.where}: no lock key from ${quoteTemplate(template.text)}: ${what}.`, {
      key: template.text,
      ...cause,
    });
  let key = template.head;
  for (const slot of template.slots) {
    key += valueText(slot, readValue(slot, args, context, failure), failure) + slot.tail;
  }
  const problem = keyProblem(key);
  if (problem !== undefined) throw failure(`the rendered key ${problem}`);
  return key;
}

function readValue(
  { placeholder, readRoot }: Slot,
  args: readonly unknown[],
  context: ContextLookup | undefined,
  failure: Failure,
): unknown {
  const { text, root, path } = placeholder;
  let value = attempt(() => readRoot(args, context), text, failure);
  if (value === MISSING) throw failure(`there is no ${root} in the values given`);
  for (const [depth, name] of path.entries()) {
    const holder = value;
    const holderName = () => `${[root, ...path.slice(0, depth)].join('.')} in ${text}`;
    if (typeof holder !== 'object' || holder === null) {
      throw failure(
        `${holderName()} is ${describe(holder)}, so it has no ${name} to read${contextHint(root, holder)}`,
      );
    }
    value = attempt(() => readProperty(holder, name), text, failure);
    if (value === MISSING) {
      throw failure(
        `${holderName()} has no ${name}. Own properties and getters of the object's class are read; inherited ` +
          `methods and what JavaScript itself defines are not`,
      );
    }
  }
  return value;
}

function attempt(read: () => unknown, text: string, failure: Failure): unknown {
  try {
    return read();
  } catch (cause) {
    throw failure(`reading ${text} threw an error (see cause)`, { cause });
  }
}

function valueText({ placeholder }: Slot, value: unknown, failure: Failure): string {
  if (typeof value === 'string' && value !== '') {
    const escaped = escapeValue(value);
    if (escaped !== undefined) return escaped;
    throw failure(
      `${placeholder.text} has half a surrogate pair in it (broken UTF-16), which UTF-8 cannot carry`,
    );
  }
  if (Number.isFinite(value) || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  throw failure(`${placeholder.text} is ${describe(value)}. ${remedy(placeholder, value)}`);
}

function remedy({ text, root }: Placeholder, value: unknown): string {
  const allowed = 'A value must be a string that is not empty, a finite number, a bigint or a boolean';
  if (value === undefined) {
    return `${allowed}${contextHint(root, value) || '; defaults of parameters are not applied yet when the key is made'}`;
  }
  if (typeof value !== 'object' || value === null) return allowed;
  const property = exampleProperty(value);
  const path =
    property && `name ${property.kind} of it, such as ${text.slice(0, -2)}.${property.name}>>, or `;
  return `${allowed}: ${path ?? ''}use a key function with lockKey`;
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

const contextHint = (root: string, value: unknown): string =>
  root.startsWith('$') && value === undefined
    ? `; $request is there in HTTP requests only, other $names come from the module's context option`
    : '';
