import { TURN_MS } from '../../../lib/core/wait/fairness.js';
import type { Witness } from '../callers/witness.js';
import type { Agenda } from '../engine/agenda.js';
import { NodeQueue } from '../../../lib/stores/zookeeper/lock-nodes.js';
import { leasesIn } from '../../../lib/stores/zookeeper/permit-nodes.js';
import type { SimEnsemble } from './sim-ensemble.js';
import type { Machine } from './zk-callers.js';
import type { ZkFault } from './zk-faults.js';

/** What faults act on. */
export interface World {
  readonly agenda: Agenda;
  readonly ensemble: SimEnsemble;
  readonly machines: readonly Machine[];
  readonly witness: Witness;
}

/** Node that contains the nodes of a key. */
export const pathOf = (key: string): string => `/locks/${key}`;

/** How long a server is down that dies after a sync, in ms. */
const DEAD_MS = 200;

/** Puts a fault on the agenda, or at a step of a process. */
export const planFault = (fault: ZkFault, world: World): void => {
  const { agenda, machines } = world;
  if (!('step' in fault) || fault.step === undefined) {
    agenda.at(fault.at, () => play(fault, world));
    return;
  }
  const { interruptions } = machines[fault.process]!.process;
  // Code stops or ends at any step; all else happens after it.
  const isAtOnce = fault.kind === 'pause' || fault.kind === 'crash';
  const inTime = (): void =>
    isAtOnce ? play(fault, world) : void agenda.at(agenda.now, () => play(fault, world));
  interruptions.set(fault.step, inTime);
};

const play = (fault: ZkFault, world: World): void => {
  const { agenda, ensemble, machines } = world;
  const { now } = agenda;
  const machine = machines['process' in fault ? fault.process : 0]!;
  const { process, link } = machine;
  const server = ensemble.servers['server' in fault ? fault.server : 0]!;
  switch (fault.kind) {
    case 'lost-request':
      return link.loseRequest(fault);
    case 'lost-reply':
      return link.loseReply(fault);
    case 'cut':
      return link.cut(fault.lateMs);
    case 'mute':
      return link.mute();
    case 'silence':
      return link.silence(now + fault.forMs);
    case 'slow':
      return link.slow(fault.extraMs, now + fault.forMs);
    case 'pause':
      return process.freeze(fault.forMs);
    case 'crash':
      process.crash();
      return link.crashed();
    case 'close':
      return shutDown(machine);
    case 'force':
      return force(machine, fault.key, world);
    case 'refuse':
      ensemble.refusesUntil = Math.max(ensemble.refusesUntil, now + fault.forMs);
      return;
    case 'election':
      return ensemble.elect(fault.forMs);
    case 'server-dies':
      server.die();
      agenda.quietly(now + fault.forMs, () => (server.isUp = true));
      return;
    case 'server-pauses':
      server.pausedUntil = Math.max(server.pausedUntil, now + fault.forMs);
      return;
    case 'lag':
      server.lagMs = fault.lagMs;
      server.lagsUntil = now + fault.forMs;
      return;
    case 'sweep':
      return ensemble.sweep();
    case 'delete':
      return deleteFirst(fault.key, world);
    case 'unreported':
      link.onBeat = (its) => {
        link.slow(fault.lateMs, agenda.now + 1);
        // When the reply is on its way.
        agenda.quietly(agenda.now, () => its.die());
        agenda.quietly(agenda.now + DEAD_MS, () => (its.isUp = true));
        agenda.quietly(agenda.now, () => link.silence(agenda.now + fault.forMs));
      };
  }
};

const shutDown = (machine: Machine): void => {
  if (machine.isClosing) return;
  machine.process.arrive(() => {
    machine.isClosing = true;
    void machine.manager.close();
  });
};

/**
 * A process forces a key open. For the time of a hand-off batch, readers may still join a hold that this has ended. The
 * simulation knows what the request has deleted when its reply arrives. Of a lost request it never knows.
 */
const force = ({ process, manager }: Machine, key: string, { agenda, witness }: World): void => {
  witness.excuse(key, Infinity);
  process.arrive(() => {
    const over = (): void => {
      witness.excuse(key, agenda.now + TURN_MS);
    };
    void manager.forceUnlock(key).then(over, () => undefined);
  });
};

const deleteFirst = (key: string, { agenda, ensemble, witness }: World): void => {
  const childrenOf = (path: string): string[] => [...(ensemble.tree.get(path)?.children ?? [])];
  const permits = leasesIn(pathOf(key));
  const path = childrenOf(permits).length > 0 ? permits : pathOf(key);
  const { nodes } = new NodeQueue(childrenOf(path));
  if (!nodes[0] || !ensemble.hasLeader) return;
  witness.excuse(key, agenda.now + TURN_MS);
  ensemble.delete(`${path}/${nodes[0].name}`);
};
