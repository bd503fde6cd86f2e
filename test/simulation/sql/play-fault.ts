import type { Served } from '../callers/callers.js';
import type { Witness } from '../callers/witness.js';
import type { Agenda } from '../engine/agenda.js';
import type { SimDatabase } from './sim-database.js';
import type { SimLink } from './sim-link.js';
import type { SqlFault } from './sql-faults.js';

/** A process, and its connections. */
export interface Machine extends Served {
  readonly link: SimLink;
}

/** What faults act on. */
export interface World {
  readonly agenda: Agenda;
  readonly database: SimDatabase;
  readonly machines: readonly Machine[];
  readonly witness: Witness;
  readonly watchdogMs: number;
}

/** Puts a fault on the agenda, or at a step of a process. */
export const planFault = (fault: SqlFault, world: World): void => {
  const { agenda, machines } = world;
  if ((fault.kind === 'pause' || fault.kind === 'crash') && fault.step !== undefined) {
    const { interruptions } = machines[fault.process]!.process;
    interruptions.set(fault.step, () => play(fault, world));
  } else agenda.at(fault.at, () => play(fault, world));
};

const play = (fault: SqlFault, { agenda, database, machines, witness, watchdogMs }: World): void => {
  const { now } = agenda;
  const { process, link } = machines['process' in fault ? fault.process : 0]!;
  switch (fault.kind) {
    case 'lost-request':
      return link.loseRequest(fault);
    case 'lost-reply':
      return link.loseReply(fault);
    case 'cut':
      return link.cut(fault.isAll, fault.lateMs);
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
    case 'slow-statement':
      return database.delayNext(fault.of, fault.ms);
    case 'stubborn':
      return database.refuseKills(fault.count);
    case 'refuse':
      database.refusesUntil = Math.max(database.refusesUntil, now + fault.forMs);
      return;
    case 'restart':
      database.die();
      agenda.at(now + fault.downMs, () => (database.isUp = true));
      return;
    case 'clock':
      database.stepClock(fault.aheadMs);
      // Leases that are under way end early, and their holders hear of it at the next renewal.
      if (fault.aheadMs > 0) witness.excusedBefore = now + 1.1 * watchdogMs;
      return;
    case 'row-lock':
      return database.lockRow(fault.key, now + fault.forMs);
  }
};
