import type { EventOf, Mode } from '../history.js';
import type { Past } from '../past.js';
import { joined, lengthOf, without, type Span } from '../spans.js';

/** One owner's hold, for as long as the store kept it. */
export interface Stay extends Span {
  readonly key: string;
  readonly owner: string;
  /** The tokens it was given, each a first and a last one. */
  readonly tokens: readonly (readonly [first: number, last: number])[];
  /** Of a read-write lock: as what. */
  readonly mode: Mode | undefined;
  /** Of one that came to write: since when it reads on. */
  readonly readsFrom: number | undefined;
  /** Undefined when it never ended. */
  readonly how: EventOf<'free'>['how'] | undefined;
}

const tokensOf = ({ token, lastToken }: EventOf<'hold'>): Stay['tokens'] =>
  token === undefined ? [] : [[token, lastToken ?? token]];

const known = new WeakMap<Past, readonly Stay[]>();

/** All holds there were, in no order. Those that never ended end with the history. */
export const staysIn = (past: Past): readonly Stay[] => {
  let stays = known.get(past);
  if (!stays) known.set(past, (stays = readStays(past)));
  return stays;
};

const readStays = (past: Past): Stay[] => {
  const open = new Map<string, { -readonly [K in keyof Stay]: Stay[K] }>();
  const stays: Stay[] = [];
  for (const event of past.events) {
    if (event.type !== 'hold' && event.type !== 'free') continue;
    const { key, owner, at } = event;
    const name = `${key} ${owner}`;
    const stay = open.get(name);
    if (event.type === 'hold') {
      const tokens = tokensOf(event);
      if (stay) {
        stay.tokens = [...stay.tokens, ...tokens];
        if (stay.mode === 'write' && event.mode === 'read') stay.readsFrom ??= at;
      } else
        open.set(name, {
          key,
          owner,
          from: at,
          to: past.end,
          tokens,
          mode: event.mode,
          readsFrom: undefined,
          how: undefined,
        });
    } else if (stay) {
      stay.to = at;
      stay.how = event.how;
      stays.push(stay);
      open.delete(name);
    }
  }
  return [...stays, ...open.values()];
};

/** For how long nobody may have been beside it. */
export const singleIn = ({ from, to, mode, readsFrom }: Stay): Span | undefined =>
  mode === 'read' ? undefined : { from, to: readsFrom ?? to };

/** What a lease knows its hold by: a token, or the owner of a permit or a read lock. */
interface Known {
  readonly token: number;
  readonly owner?: string | undefined;
}

/** Whether it is this hold that a lease has. */
export const gave = (stay: Stay, { token, owner }: Known): boolean =>
  owner === undefined
    ? stay.tokens.some(([first, last]) => first <= token && token <= last)
    : stay.owner === owner;

/** The hold that a lease has or had; undefined where the store was not watched, or gave no such hold. */
export const stayOf = (past: Past, key: string, known: Known): Stay | undefined =>
  staysIn(past).findLast((stay) => stay.key === key && gave(stay, known));

/** When the process was told that the hold is not there any more: by a renewal, or by opening it itself. */
const notifiedAt = (past: Past, process: string, { key, owner, from, to }: Stay): number => {
  let notified = Infinity;
  for (const request of past.requests) {
    const at = request.owners ? request.owners.indexOf(owner) : request.keys.indexOf(key);
    if (request.process !== process || at === -1 || request.to < to || request.to >= notified) continue;
    // What was asked for before it began may have ended the one before.
    if (request.from < from) continue;
    const opened = request.what === 'forceUnlock' && request.outcome === 'true' && request.from <= to;
    const isRenewal = request.what === 'extend' || request.what === 'downgrade';
    const refused = isRenewal && request.outcome?.split(' ')[at] === 'lost';
    if (opened || refused) notified = request.to;
  }
  return notified;
};

/** When the store has the key for the same owner at other times: it came back as it was once, or kept an old line. */
const otherTimes = (past: Past, stay: Stay): Span[] =>
  joined(
    staysIn(past)
      .filter((other) => other !== stay && other.key === stay.key && other.owner === stay.owner)
      .map(({ from, to }) => ({ from, to })),
  );

/**
 * For how long, until this moment, a process could know that its hold is gone. While the store does not stand by what
 * it said, that begins when the process is told.
 */
export const groundlessMs = (past: Past, process: string, stay: Stay, until: number): number => {
  const { key, from, to } = stay;
  if (until <= to) return 0;
  const notified = Math.max(to, notifiedAt(past, process, stay));
  const others = otherTimes(past, stay);
  const unnotified = past
    .protectedParts(key, { from: to, to: Math.min(until, notified) }, from)
    .flatMap((span) => without(span, others));
  // Nothing can be told to somebody who stands still.
  const ignored = without({ from: notified, to: Math.max(notified, until) }, others);
  return ignored.reduce((sum, span) => sum + past.unblockedMs(process, span), lengthOf(unnotified));
};
