import { inspect, types } from 'node:util';
import { expect } from 'vitest';

const EVERYTHING = {
  depth: Infinity,
  showHidden: true,
  maxArrayLength: null,
  maxStringLength: null,
} as const;

/** Members that are no properties: only `inspect` shows them. */
const hasHiddenMembers = (value: object): boolean =>
  types.isWeakMap(value) || types.isWeakSet(value) || types.isPromise(value) || inspect.custom in value;

/** Passes each text that can be reached from a value to `look`, once: also in hidden properties and those of symbols. */
const lookInto = (root: unknown, look: (text: string) => void): void => {
  const seen = new Set<unknown>();
  const left = [root];
  while (left.length > 0) {
    const value = left.pop();
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) {
      look(String(value));
      continue;
    }
    if (seen.has(value)) continue;
    seen.add(value);
    if (hasHiddenMembers(value)) look(inspect(value, { ...EVERYTHING, depth: 2 }));
    if (value instanceof Map || value instanceof Set) left.push(...value.keys(), ...value.values());
    // Each byte would be a property.
    if (ArrayBuffer.isView(value)) continue;
    for (const key of Reflect.ownKeys(value))
      left.push(key, Object.getOwnPropertyDescriptor(value, key)?.value);
  }
};

const refuse = (secret: RegExp, what: string) => (text: string) => {
  const at = text.search(secret);
  if (at >= 0) expect.fail(`${what} shows a secret: …${text.slice(Math.max(0, at - 1_000), at + 200)}…`);
};

/** Expects that no print of a value shows a secret: by `inspect` at any depth, as JSON, as text. */
export const expectNotPrinted = (value: unknown, secret: RegExp, what: string): void => {
  const look = refuse(secret, what);
  look(inspect(value, EVERYTHING));
  look(String(value));
  look(JSON.stringify(value) ?? '');
};

/** Expects that a secret is in no print of a value, nor in any property that can be reached from it. */
export const expectHidden = (value: unknown, secret: RegExp, what: string): void => {
  expectNotPrinted(value, secret, what);
  lookInto(value, refuse(secret, `something in ${what}`));
};
