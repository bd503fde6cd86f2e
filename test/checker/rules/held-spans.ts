import type { Past } from '../past.js';
import { joined, type Span } from '../spans.js';

/** When each key had a hold in the store; undefined when nobody watched the store. */
export const heldSpans = (past: Past): ReadonlyMap<string, readonly Span[]> | undefined => {
  const holds = past.all('hold');
  if (holds.length === 0) return undefined;
  const events = [...holds, ...past.all('free')].sort((a, b) => a.at - b.at);
  const since = new Map<string, number>();
  const spans = new Map<string, Span[]>();
  const add = (key: string, span: Span) => {
    const list = spans.get(key);
    if (list) list.push(span);
    else spans.set(key, [span]);
  };
  for (const event of events) {
    const from = since.get(event.key);
    if (event.type === 'hold') since.set(event.key, from ?? event.at);
    else if (from !== undefined) {
      add(event.key, { from, to: event.at });
      since.delete(event.key);
    }
  }
  for (const [key, from] of since) add(key, { from, to: Infinity });
  return new Map([...spans].map(([key, list]) => [key, joined(list)]));
};
