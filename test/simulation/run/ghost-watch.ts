import type { PlanSettings } from '../plan/plan.js';
import type { Host, Surroundings } from './host.js';

/** A process that has had nothing to do for this long, in ms, will not end a hold any more. */
const SURE_AFTER_MS = 100;

/** Looks for holds in the server that a live process has left there, at any time of the run. */
export class GhostWatch {
  private readonly idle = new Map<Host, boolean>();
  /** Owners that were reported, or that are nobody's fault; and from when on. */
  private readonly known = new Map<string, number>();

  constructor(
    private readonly around: Surroundings,
    private readonly hosts: ReadonlyMap<string, Host>,
    private readonly settings: PlanSettings,
  ) {
    around.server.onProlonged = (owners) => {
      for (const owner of owners) this.known.set(owner, 0);
    };
    around.server.onScript = (words, sentAt, givenUp) => {
      // The watch looks for the hold of a late command until its lease has ended, and no longer.
      for (const word of givenUp ? words : []) {
        const leaseMs = around.claims.leaseMs.get(word);
        if (leaseMs !== undefined) this.known.set(word, sentAt + leaseMs);
      }
      this.lookLater();
    };
  }

  /** Each time a process has nothing to do any more, it is looked at a moment later. */
  look(host: Host): void {
    const idle = host.isIdle;
    if (idle && this.idle.get(host) === false) this.lookLater();
    this.idle.set(host, idle);
  }

  lookAtAll(): void {
    // Without the right to end sessions nobody can keep an old one from taking something late.
    if (!this.settings.mayKill) return;
    const { server, chronicle, agenda, claims } = this.around;
    for (const [key, owner] of server.owners) {
      const host = [...this.hosts.values()].find(({ process }) => owner.startsWith(process.idPrefix));
      if (!host?.isIdle || host.process.crashed || host.process.stopping) continue;
      if (agenda.now >= (this.known.get(owner) ?? Infinity) || claims.kept.has(owner)) continue;
      this.known.set(owner, 0);
      chronicle.add({ type: 'left', at: agenda.now, process: host.process.name, key, owner });
    }
  }

  private lookLater(): void {
    this.around.agenda.quietly(this.around.agenda.now + SURE_AFTER_MS, () => this.lookAtAll());
  }
}
