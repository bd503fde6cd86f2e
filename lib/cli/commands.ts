import type { KeyState, ListedLock, LockService } from '../index.js';
import type { Command, Invocation } from './arguments.js';
import type { InspectedKey } from '../core/holders/holders.js';
import { holderRows, printable, tableOf, type Row } from './table.js';
import { UsageError } from './usage-error.js';

/** Exit codes. "Taken", "the store failed" and "unknown" are three different replies: a free key is never a failure. */
export const EXIT = {
  /** Something was found, or was done. */
  DONE: 0,
  /** The key is free, or there was nothing to do. */
  NOTHING: 1,
  /** The arguments, or the set-up of the store, cannot work. */
  USAGE: 2,
  /** The store failed, or the outcome is unknown. */
  FAILED: 3,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Part of a lock service that the commands use. None of these creates a lock. */
export type Locks = Pick<LockService, 'inspect' | 'list' | 'forceUnlock'>;

/** Terminal of a command. */
export interface Terminal {
  /** Width in characters; undefined where no person reads. */
  readonly columns: number | undefined;
  /** Writes the result. */
  readonly out: (text: string) => void;
  /** Writes anything else, so that the result can be read by a program. */
  readonly note: (text: string) => void;
  /** Resolves with whether the answer is yes. Undefined where no person can answer. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined;
}

type Run = (invocation: Invocation, locks: Locks, terminal: Terminal) => Promise<ExitCode>;

/** `Infinity` is no JSON: a lease without an end is null. */
const json = (value: unknown): string => `${escapedJson(JSON.stringify(value, undefined, 2))}\n`;

/** JSON leaves control characters above U+001F as they are, and they can steer a terminal. */
const escapedJson = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

const isFree = (key: string): string => `${printable(key)} is free.\n`;

/** Text about a lock of another library, which this one never ends. */
const isString = (key: string): string =>
  `${printable(key)} has a string, as other lock libraries leave it. unlock does not end it: if no program holds that lock, ` +
  'delete the string by hand.\n';

const counted = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

const queueText = ({ waiting }: KeyState): string =>
  waiting.length === 0 ? 'No caller is queued.\n' : `${counted(waiting.length, 'caller')} queued.\n`;

/** Prefix of every key, unless the app has another one. */
const DEFAULT_PREFIX = 'lock:';

/** Returns the state of a key. A person may have copied the key from Redis, with the prefix. */
const found = async (
  { key, keyPrefix = DEFAULT_PREFIX }: Pick<Invocation, 'key' | 'keyPrefix'>,
  locks: Locks,
): Promise<{ key: string; state: InspectedKey | null }> => {
  const state = await locks.inspect(key);
  const isDoubled = !state && keyPrefix !== '' && key.startsWith(keyPrefix) && key !== keyPrefix;
  const bare = key.slice(keyPrefix.length);
  const other = isDoubled ? await locks.inspect(bare) : null;
  return other ? { key: bare, state: other } : { key, state };
};

/** Shows the holders of a key. */
const who: Run = async (invocation, locks, { columns, out }) => {
  const isJson = invocation.json;
  const { key, state } = await found(invocation, locks);
  if (isJson) out(json(state && { key, ...state }));
  else out(state ? tableOf(holderRows(key, state), columns) + queueText(state) : isFree(key));
  return state ? EXIT.DONE : EXIT.NOTHING;
};

/** Shows holders and queued owners of a key, in order. */
const queue: Run = async (invocation, locks, { columns, out }) => {
  const isJson = invocation.json;
  const { key, state } = await found(invocation, locks);
  if (isJson) out(json(state && { key, ...state }));
  else if (!state) out(isFree(key));
  else {
    const waiting = state.waiting.map((owner, at): Row => {
      const process = state.waitingProcesses?.[at];
      return { key, kind: '', state: `${at + 1}.`, owner, process };
    });
    const rows = [...holderRows(key, state, { state: 'holds' }), ...waiting];
    out(tableOf(rows, columns) + (waiting.length === 0 ? queueText(state) : ''));
  }
  return state ? EXIT.DONE : EXIT.NOTHING;
};

/** Reads all pages. A key may be on two pages: the later one counts. */
const allLocks = async (prefix: string, locks: Locks): Promise<ListedLock[]> => {
  const found = new Map<string, ListedLock>();
  let cursor: string | undefined;
  do {
    const page = await locks.list({ prefix, cursor });
    for (const lock of page.locks) found.set(lock.key, lock);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return [...found.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
};

/** Shows all held keys, and the keys for which callers only wait. */
const list: Run = async ({ key: prefix, json: isJson }, locks, { columns, out }) => {
  const found = await allLocks(prefix, locks);
  const rows = found.flatMap(({ key, ...lock }): readonly Row[] => {
    const more = { waiting: lock.waiting.length, nodes: lock.nodes };
    if (lock.holders.length > 0) return holderRows(key, lock, more);
    return [{ key, kind: lock.kind, owner: '', ...more }];
  });
  const held = found.filter(({ holders }) => holders.length > 0).length;
  const others = found.length === held ? '' : `, ${found.length - held} free with callers queued`;
  if (isJson) out(json(found));
  else
    out(
      found.length === 0
        ? 'No key is held.\n'
        : `${tableOf(rows, columns)}${counted(held, 'key')} held${others}.\n`,
    );
  return found.length === 0 ? EXIT.NOTHING : EXIT.DONE;
};

/** Returns whether a holder came after another look. */
const hasNewHolder = (before: KeyState, now: KeyState): boolean => {
  const known = new Set(before.holders.map(({ owner }) => owner));
  return now.holders.some(({ owner }) => !known.has(owner));
};

/**
 * Asks before an unlock. Resolves with the present state if the answer is yes. An answer takes long: if another caller has
 * got the key meanwhile, the person has not agreed to end its hold.
 */
const agreed = async (
  key: string,
  shown: KeyState,
  locks: Locks,
  { ask, note }: Terminal,
): Promise<KeyState | null> => {
  if (!ask)
    throw new UsageError('unlock asks before it ends a hold, and this is no terminal. Pass --yes to agree.');
  const question = `End ${counted(shown.holders.length, 'hold')} of ${printable(key)}? [y/N] `;
  const now = (await ask(question)) ? await locks.inspect(key) : undefined;
  if (now && !hasNewHolder(shown, now)) return now;
  const why = now
    ? 'Another caller has got the key meanwhile. '
    : now === null
      ? isFree(key).replace('\n', ' ')
      : '';
  note(`${why}Nothing was ended.\n`);
  return null;
};

/** Ends all holds of a key. */
const unlock: Run = async (invocation, locks, terminal) => {
  const { key, json: isJson, yes } = invocation;
  const { columns, out, note } = terminal;
  const nothing = (text: string): ExitCode => {
    if (isJson) out(json({ key, ended: 0 }));
    if (text !== '') (isJson ? note : out)(text);
    return EXIT.NOTHING;
  };
  const shown = await locks.inspect(key);
  if (!shown) {
    // Never ends the holds of another key than the one that it was given.
    const { key: bare, state } = await found(invocation, locks);
    return nothing(
      state ? `${isFree(key)}${printable(bare)} is held: give the key without its prefix.\n` : isFree(key),
    );
  }
  note(tableOf(holderRows(key, shown), columns));
  if (shown.heldAs === 'foreign') return nothing(isString(key));
  const state = yes ? shown : await agreed(key, shown, locks, terminal);
  if (!state) return nothing('');
  if (!(await locks.forceUnlock(key))) return nothing(`${printable(key)} was released meanwhile.\n`);
  const ended = state.holders.length;
  if (isJson) out(json({ key, ended, kind: state.kind, holders: state.holders }));
  else out(`Ended ${counted(ended, 'hold')} of ${printable(key)}.\n`);
  note('A former holder works on until its next renewal, which tells it that the lock is lost.\n');
  return EXIT.DONE;
};

const RUNS: Readonly<Record<Command, Run>> = { who, list, queue, unlock };

/** Runs a command. Resolves with its exit code; rejects with the error of the lock service. */
export const runCommand: Run = (invocation, locks, terminal) =>
  RUNS[invocation.command](invocation, locks, terminal);
