import type { Past } from '../past.js';
import type { Mode } from '../history.js';
import { joined, overlaps, type Span } from '../spans.js';
import { staysIn } from './stays.js';

/**
 * When nobody else could have each key: it had a hold in the store, or no permit was free; to read a read-write lock, when
 * somebody wrote. Undefined: nobody watched.
 */
export const heldSpans = (past: Past, wanted?: Mode): ReadonlyMap<string, readonly Span[]> | undefined => {
  if (past.all('hold').length === 0) return undefined;
  const since = new Map<string, number>();
  const spans = new Map<string, Span[]>();
  const add = (key: string, span: Span) => {
    const list = spans.get(key);
    if (list) list.push(span);
    else spans.set(key, [span]);
  };
  for (const event of past.events) {
    if (event.type !== 'hold' && event.type !== 'free') continue;
    const from = since.get(event.key);
    if (event.type === 'hold') since.set(event.key, from ?? event.at);
    else if (from !== undefined) {
      add(event.key, { from, to: event.at });
      since.delete(event.key);
    }
  }
  for (const [key, from] of since) add(key, { from, to: Infinity });
  const held = new Map<string, readonly Span[]>([...spans].map(([key, list]) => [key, joined(list)]));
  for (const [key, { min }] of past.limits) {
    const stays = staysIn(past).filter((stay) => stay.key === key);
    held.set(
      key,
      overlaps(
        stays.map(({ from, to, how }) => ({ from, to: how ? to : Infinity })),
        min,
      ),
    );
  }
  for (const key of past.readWrite) {
    const stays = staysIn(past).filter(
      (stay) => stay.key === key && (wanted !== 'read' || stay.mode !== 'read'),
    );
    const spans = stays.map(({ from, to, how, readsFrom }): Span => {
      if (wanted === 'read' && readsFrom !== undefined) return { from, to: readsFrom };
      return { from, to: how ? to : Infinity };
    });
    held.set(key, joined(spans));
  }
  return held;
};
