import { hashSlot } from '../hash-slot.js';
import type { ClusterServer } from './cluster-server.js';
import type { NodeAddress, SlotRange } from './slots.js';

/**
 * Redis's slot map, as far as it is known: the server of each slot. MOVED changes one slot of it at once, and a refresh
 * of all follows soon. A server that is importing a slot (ASK) does not count as its server yet.
 */
export class SlotMap {
  /** Undefined until the first refresh. */
  private slots: (ClusterServer | undefined)[] | undefined;
  /** Servers that have slots. */
  masters: readonly ClusterServer[] = [];
  /** Masters at the last refresh, before any later MOVED. */
  private lastMasters: readonly ClusterServer[] = [];

  get isKnown(): boolean {
    return this.slots !== undefined;
  }

  serverOf(name: string): ClusterServer | undefined {
    return this.slots?.[hashSlot(name)];
  }

  /** Returns one of the server's slots. */
  slotOf(server: ClusterServer): number | undefined {
    const slot = this.slots?.indexOf(server) ?? -1;
    return slot === -1 ? undefined : slot;
  }

  /** Records that a slot has moved. Returns whether that changes the map. */
  move(slot: number, to: ClusterServer): boolean {
    if (!this.slots || this.slots[slot] === to) return false;
    this.slots[slot] = to;
    this.masters = mastersOf(this.slots);
    return true;
  }

  /** Replaces the map. Returns whether a master of the last refresh has no slot any more. */
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
