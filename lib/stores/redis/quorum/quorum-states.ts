import type { Holder, KeyState } from '../../../core/seam/reply.js';

/**
 * Merges what nodes say about one key: the holders that at least `atLeast` of the states have, of the kind that most
 * nodes have. A hold lasts as long as `majority` nodes keep it. Null without such a holder.
 */
export const mergedState = (
  states: readonly KeyState[],
  { atLeast, majority }: { readonly atLeast: number; readonly majority: number },
): KeyState | null => {
  const seen = new Map<string, Pick<KeyState, 'kind' | 'heldAs'> & { readonly holds: Holder[] }>();
  for (const { kind, heldAs, holders } of states) {
    for (const holder of holders) {
      const id = `${heldAs ?? kind} ${holder.owner}`;
      const { holds } = seen.get(id) ?? { holds: [] };
      seen.set(id, { kind, ...(heldAs && { heldAs }), holds: [...holds, holder] });
    }
  }
  const held = [...seen.values()].filter(({ holds }) => holds.length >= atLeast);
  const [first] = held.sort((a, b) => b.holds.length - a.holds.length);
  if (!first) return null;
  const { kind, heldAs } = first;
  const holders = held
    .filter((one) => one.kind === kind && one.heldAs === heldAs)
    .map(({ holds }) => ({
      ...holds[0]!,
      remainingMs: holds.map(({ remainingMs }) => remainingMs).sort((a, b) => b - a)[
        Math.min(majority, holds.length) - 1
      ]!,
    }));
  return { kind, ...(heldAs && { heldAs }), holders, waiting: [] };
};
