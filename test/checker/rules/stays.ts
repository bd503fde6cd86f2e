import type { EventOf } from '../history.js';
import type { Past } from '../past.js';
import type { Span } from '../spans.js';

/** One owner's hold, for as long as the store kept it. */
export interface Stay extends Span {
  readonly key: string;
  readonly owner: string;
  /** The tokens it was given, each a first and a last one. */
  readonly tokens: readonly (readonly [first: number, last: number])[];
}

const tokensOf = ({ token, lastToken }: EventOf<'hold'>): Stay['tokens'] =>
  token === undefined ? [] : [[token, lastToken ?? token]];

/** All holds there were, in no order. Those that never ended end with the history. */
export const staysIn = (past: Past): Stay[] => {
  const open = new Map<string, { -readonly [K in keyof Stay]: Stay[K] }>();
  const stays: Stay[] = [];
  for (const event of past.events) {
    if (event.type !== 'hold' && event.type !== 'free') continue;
    const { key, owner, at } = event;
    const name = `${key} ${owner}`;
    const stay = open.get(name);
    if (event.type === 'hold') {
      const tokens = tokensOf(event);
      if (stay) stay.tokens = [...stay.tokens, ...tokens];
      else open.set(name, { key, owner, from: at, to: past.end, tokens });
    } else if (stay) {
      stay.to = at;
      stays.push(stay);
      open.delete(name);
    }
  }
  return [...stays, ...open.values()];
};

/** Whether a token was given with this hold. */
export const gave = ({ tokens }: Stay, token: number): boolean =>
  tokens.some(([first, last]) => first <= token && token <= last);
