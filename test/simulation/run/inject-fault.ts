import type { Fault, PlanSettings } from '../plan/plan.js';
import type { Host, Surroundings } from './host.js';

/** A little more than it takes to find out that nothing is wrong any more. */
const MARGIN_MS = 60;
/** How long a client waits before it connects again, and an interrupted subscriber before its waiters look. */
const RECONNECT_MS = 30 + 100;
/** Longest pause of a waiter between two tries while the server refuses: nothing notifies it that the server works again. */
const OUTAGE_PAUSE_MS = 625;
/** Interval at which the store checks a subscriber with waiters. One PING is left out after a message. */
const PING_MS = 1_000;

/** Makes things go wrong, and says until when their victims are excused. */
export class FaultInjector {
  private stopped = false;
  /** Until when somebody may feel something of it. */
  troubledUntil = 0;

  constructor(
    private readonly around: Surroundings,
    private readonly hosts: ReadonlyMap<string, Host>,
    private readonly settings: PlanSettings,
  ) {}

  /** From now on nothing goes wrong any more. */
  stop(): void {
    this.stopped = true;
  }

  /** Puts a fault on the agenda, or at a step of a process. */
  plan(fault: Fault): void {
    if (fault.kind === 'freeze-step' || fault.kind === 'crash-step') {
      const process = this.hosts.get(fault.process)?.process;
      process?.interruptions.set(fault.step, () => {
        if (this.stopped) return;
        if (fault.kind === 'crash-step') process.crash();
        else process.freeze(fault.ms);
      });
      return;
    }
    if (fault.kind === 'server-failover') this.around.server.planFailOver(fault.at, fault.behindMs);
    // Some faults end a wait at once, and then code of the process runs.
    this.around.agenda.at(fault.at, () => this.inject(fault));
  }

  private inject(fault: Exclude<Fault, { kind: 'freeze-step' | 'crash-step' }>): void {
    const { server, agenda } = this.around;
    const { now } = agenda;
    const host = 'process' in fault ? this.hosts.get(fault.process) : undefined;
    if (this.stopped || ('process' in fault && (!host || host.process.crashed))) return;
    const session = 'role' in fault ? host?.links[fault.role].session : undefined;
    switch (fault.kind) {
      case 'freeze':
        return host!.process.freeze(fault.ms);
      case 'crash':
        return host!.process.crash(now);
      case 'shut-down':
        return host!.process.arrive(() => host!.shutDown());
      case 'cut':
        this.trouble(fault, 0, `the ${fault.role} connection breaks`);
        return session?.cut(fault.lateMs);
      case 'kill':
        this.trouble(fault, 0, `the server ends the ${fault.role} connection`);
        return session?.endByServer();
      case 'half-open': {
        const noticeMs = this.noticeMs(fault.role);
        const ms = fault.ms === null ? noticeMs : fault.ms;
        const what = `the ${fault.role} connection is silent (${fault.direction})`;
        this.trouble(fault, Math.min(ms, noticeMs), what);
        if (!session) return;
        session.onVainUse = () => this.trouble(fault, noticeMs, what);
        return session.silence(fault.direction, now + (fault.ms ?? Infinity));
      }
      case 'partition':
        this.trouble(fault, fault.ms + this.noticeMs('subscriber'), 'the server cannot be reached');
        for (const link of Object.values(host!.links)) link.silence('both', now + fault.ms);
        return;
      case 'slow':
        this.trouble(
          fault,
          fault.ms + this.noticeMs(fault.role) + this.pauseAfter(fault.extraMs),
          `the ${fault.role} connection is slow`,
        );
        return host!.links[fault.role].slow(fault.extraMs, now + fault.ms);
      case 'spurious-hint':
        return host!.process.arrive(() => host!.clients.subscriber.emitStrayMessages());
      case 'wall-clock':
        this.note(`the clock of ${fault.process} is set by ${fault.ms} ms`);
        host!.process.wallSkewMs += fault.ms;
        host!.process.touched = true;
        return;
      case 'server-stop':
        this.trouble(fault, fault.ms + this.noticeMs('subscriber'), 'the server stands still');
        return server.stop(now + fault.ms);
      case 'server-slow':
        this.trouble(fault, fault.ms + this.noticeMs('subscriber'), 'the server is slow');
        agenda.quietly(now + fault.ms, () =>
          this.trouble(fault, server.backlogMs + this.noticeMs('subscriber'), 'the server catches up'),
        );
        return server.slow(fault.eachMs, now + fault.ms);
      case 'server-restart':
        this.trouble(fault, fault.downMs + this.settings.commandTimeoutMs, 'the server restarts');
        return server.restart(fault.downMs, fault.keepsData);
      case 'server-failover':
        this.trouble(fault, fault.downMs + this.settings.commandTimeoutMs, 'another server takes over');
        return server.failOver(fault.at, fault.downMs, fault.behindMs);
      case 'server-flush':
        return server.loseData('the server lost its data');
      case 'delete':
        this.note(`"${fault.key}" is deleted`);
        return server.deleteKey(fault.key);
      case 'server-clock':
        return server.jump(fault.ms);
      case 'server-mood':
        this.trouble(fault, fault.ms + OUTAGE_PAUSE_MS, `the server answers ${fault.mood}`);
        return server.refuse(fault.mood, now + fault.ms);
    }
  }

  /** How long it takes at most until a silent connection is given up. */
  private noticeMs(role: 'command' | 'subscriber'): number {
    const { commandTimeoutMs } = this.settings;
    return commandTimeoutMs + (role === 'subscriber' ? 2 * PING_MS : 0);
  }

  /** How long a process may pause after requests that took so much longer: it has an outage if they were too late. */
  private pauseAfter(extraMs: number): number {
    const { commandTimeoutMs, latencyMs } = this.settings;
    return extraMs + latencyMs[1] < commandTimeoutMs ? 0 : OUTAGE_PAUSE_MS;
  }

  private trouble(fault: Fault, ms: number, what: string): void {
    const { now } = this.around.agenda;
    const process = 'process' in fault ? fault.process : undefined;
    // To connect again takes an attempt that may itself fail, and another one.
    const until = now + ms + RECONNECT_MS + MARGIN_MS + this.settings.commandTimeoutMs;
    this.troubledUntil = Math.max(this.troubledUntil, until);
    this.around.chronicle.add({ type: 'trouble', at: now, process, until, what });
  }

  private note(text: string): void {
    this.around.chronicle.add({ type: 'note', at: this.around.agenda.now, text });
  }
}
