import { hashSlot } from '../hash-slot.js';
import type { ClusterServer } from './cluster-server.js';
import type { NodeAddress, SlotRange } from './slots.js';

/**
 * Which server has which slot, as far as is known: Redis's slot map. A server that says MOVED changes one slot of it at once,
 * and the rest is looked at soon. One that is importing slots (ASK) is not in it yet.
 */
export class SlotMap {
  /** Undefined before anything is known. */
  private slots: (ClusterServer | undefined)[] | undefined;
  /** Those that have slots. */
  masters: readonly ClusterServer[] = [];
  /** The same when it was looked last, before servers said that slots have moved. */
  private lastMasters: readonly ClusterServer[] = [];

  get isKnown(): boolean {
    return this.slots !== undefined;
  }

  /** The server with the slot of a name. */
  serverOf(name: string): ClusterServer | undefined {
    return this.slots?.[hashSlot(name)];
  }

  /** One of the server's slots. */
  slotOf(server: ClusterServer): number | undefined {
    const slot = this.slots?.indexOf(server) ?? -1;
    return slot === -1 ? undefined : slot;
  }

  /** A slot has moved. Says whether that is news. */
  move(slot: number, to: ClusterServer): boolean {
    if (!this.slots || this.slots[slot] === to) return false;
    this.slots[slot] = to;
    this.masters = mastersOf(this.slots);
    return true;
  }

  /** It was looked. Says whether a master has no slot any more that had some at the last look. */
  replace(ranges: readonly SlotRange[], serverAt: (address: NodeAddress) => ClusterServer): boolean {
    const slots: (ClusterServer | undefined)[] = [];
    for (const { from, to, master } of ranges) {
      const server = serverAt(master);
      for (let slot = from; slot <= to; slot++) slots[slot] = server;
    }
    const before = this.lastMasters;
    const masters = mastersOf(slots);
    this.slots = slots;
    this.masters = masters;
    this.lastMasters = masters;
    return before.some((server) => !masters.includes(server));
  }
}

const mastersOf = (slots: readonly (ClusterServer | undefined)[]): readonly ClusterServer[] =>
  [...new Set(slots)].filter((server) => server !== undefined);
