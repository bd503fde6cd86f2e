import type { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import type { Agenda } from '../engine/agenda.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { NodeLink } from './node-link.js';
import type { QuorumFault } from './quorum-faults.js';
import { isFarOff, type SimNode } from './sim-node.js';
import type { SimNodeStore } from './sim-node-store.js';

/** A process, and what it has of the library and of the nodes. */
export interface Machine {
  readonly process: SimProcess;
  readonly links: readonly NodeLink[];
  readonly nodeStores: readonly SimNodeStore[];
  readonly store: QuorumStore;
  readonly manager: LockManager;
}

/** Puts on the agenda what goes wrong. */
export const planFault = (
  fault: QuorumFault,
  agenda: Agenda,
  nodes: readonly SimNode[],
  machines: readonly Machine[],
): void => {
  const link = (f: { process: number; node: number }): NodeLink => machines[f.process]!.links[f.node]!;
  agenda.at(fault.at, () => {
    switch (fault.kind) {
      case 'node-restart':
        nodes[fault.node]!.die(fault.forgets);
        agenda.at(agenda.now + fault.downMs, () => nodes[fault.node]!.comeBack());
        return;
      case 'partition':
        return link(fault).silence(agenda.now + fault.forMs);
      case 'cut':
        return link(fault).cut(fault.lateMs);
      case 'isolation':
        for (const one of machines[fault.process]!.links) one.isolate(agenda.now + fault.forMs);
        return;
      case 'lost-answer':
        return link(fault).loseNextReply();
      case 'lost-request':
        return link(fault).loseRequest(fault.after);
      case 'repeat':
        return link(fault).repeatNext(fault.lateMs);
      case 'slow':
        return link(fault).slow(fault.extraMs, agenda.now + fault.forMs);
      case 'clock':
        return setClock(nodes[fault.node]!, fault.aheadMs, nodes, machines);
      case 'pause':
        return machines[fault.process]!.process.freeze(fault.forMs);
      case 'crash':
        return machines[fault.process]!.process.crash();
    }
  });
};

/**
 * A clock that is far off is found out by who knows three at least, most of which are right: docs/stores/quorum.md promises
 * nothing else.
 */
const setClock = (
  node: SimNode,
  aheadMs: number,
  nodes: readonly SimNode[],
  machines: readonly Machine[],
): void => {
  const farOff = nodes.filter((one) => one !== node && one.isFarOff).length + 1;
  const isFound = machines.every(({ process, nodeStores }) => {
    const known = nodeStores.filter(({ knowsClock }) => knowsClock).length;
    return process.crashed || (known >= 3 && farOff < known / 2);
  });
  if (!isFarOff(aheadMs) || isFound) node.setClock(aheadMs);
};
