import { AsyncLocalStorage } from 'node:async_hooks';
import type { Hold } from '../core/lease/hold.js';
import type { Lease } from '../core/lease/lease.js';
import type { HeldLock } from '../core/service/held-locks.js';
import { currentSection, type Section } from '../core/nesting/section.js';
import {
  acquisitions,
  sections,
  type LockAcquireMessage,
  type LockSectionMessage,
} from '../core/context/telemetry.js';
import type { LockService } from '../nest/service/lock.service.js';
import type { Doubt, Moment, WatchedCall, Written } from './connection-state.js';
import type { UnfencedWrite } from './loss-report.js';

/** Run of the work that is going on. Undefined outside of a scenario, as in the handlers of a server that it calls. */
export const runs = new AsyncLocalStorage<LossRun>();

/** True in the work of the next holder, which is not watched. */
export const asides = new AsyncLocalStorage<boolean>();

/** Takes the locks of a section away, and lets another process have them. */
export type Lose = (held: readonly HeldLock[], noticed: boolean) => Promise<void>;

/** How locks are lost in a run. */
export interface Loss {
  /** Number of the step before which they are lost. At step 0, none are lost. */
  readonly lossAt: number;
  /** Whether their signals abort. */
  readonly noticed: boolean;
  /** Whether the next holder was in the database: fences of the lost leases are refused. */
  readonly refuses: boolean;
}

const isAround = (lease: Lease): boolean => {
  let section: Section | undefined = currentSection();
  while (section && section.lease !== lease) section = section.parent;
  return section !== undefined;
};

/** One run of the scenario, and its judge: which writes had their lock or their fence? */
export class LossRun {
  steps = 0;
  writes = 0;
  /** Whether a fence of a lost lease has passed. */
  hasPassed = false;
  readonly unfenced: UnfencedWrite[] = [];
  private lostBefore: string | undefined;
  private readonly leases = new Set<Lease>();
  private readonly inSections = new Set<Lease>();
  private readonly granted = new Set<Hold>();
  /** Holds that were taken away, by owner. A hand-off in this process keeps the owner. */
  private readonly lost = new Map<string, Hold>();
  /** Whether a lock was acquired. What comes before prepares the data. */
  hasStarted = false;

  constructor(
    private readonly locks: LockService,
    private readonly loss: Loss,
    private readonly lose: Lose,
  ) {}

  get isReached(): boolean {
    return this.lostBefore !== undefined;
  }

  /** Runs the scenario. Resolves with its error, or undefined. */
  async run(scenario: () => unknown): Promise<{ readonly error: unknown } | undefined> {
    try {
      await runs.run(this, scenario);
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** Follows the leases of the service. Returns a function that ends that. */
  follow(): () => void {
    const isOurs = ({ parts }: Lease): boolean =>
      parts.every(({ key, hold }) =>
        this.locks.held().some((one) => one.key === key && one.fencingToken === hold.token),
      );
    const grants = {
      asyncStart: ({ result }: LockAcquireMessage): void => {
        const run = runs.getStore() ?? this;
        if (run !== this || !result || !isOurs(result)) return;
        this.leases.add(result);
        for (const { hold } of result.parts) this.granted.add(hold);
        this.hasStarted = true;
      },
    } as Parameters<typeof acquisitions.subscribe>[0];
    const open = {
      start: ({ lease }: LockSectionMessage): void => void this.inSections.add(lease),
      asyncEnd: ({ lease }: LockSectionMessage): void => void this.inSections.delete(lease),
    } as Parameters<typeof sections.subscribe>[0];
    acquisitions.subscribe(grants);
    sections.subscribe(open);
    return () => {
      acquisitions.unsubscribe(grants);
      sections.unsubscribe(open);
    };
  }

  now(): Moment {
    for (const lease of this.leases) if (lease.ending) this.leases.delete(lease);
    const leases = [...this.leases];
    const isCovered = leases.some((lease) => !this.inSections.has(lease) || isAround(lease));
    return { isStarted: this.hasStarted, leases, isCovered };
  }

  before({ what }: WatchedCall): Promise<void> | undefined {
    const held = this.isReached ? [] : this.locks.held();
    if (held.length === 0 || ++this.steps !== this.loss.lossAt) return undefined;
    this.lostBefore = what;
    for (const { parts } of this.now().leases) for (const { hold } of parts) this.lost.set(hold.owner, hold);
    return this.lose(held, this.loss.noticed);
  }

  wrote({ call, moments, fences, doubt }: Written): void {
    const leases = moments.flatMap((moment) => moment.leases);
    if (leases.length > 0 && doubt !== 'rejected') this.writes++;
    const judged = moments.filter(({ isStarted }) => isStarted);
    const hadLock = judged.every((one) => one.isCovered && one.leases.every((lease) => this.isValid(lease)));
    if (judged.length === 0 || (hadLock && doubt !== 'unawaited')) return;
    const isFenced = this.isFenced(leases, fences);
    if (isFenced && doubt !== 'opaque' && doubt !== 'rejected') return;
    this.report(call, doubt === 'opaque' && !isFenced ? undefined : doubt);
  }

  /** Reports a call that is not seen. */
  unseen(call: WatchedCall, doubt: Doubt): void {
    if (this.hasStarted) this.report(call, doubt);
  }

  /** Hears that a fence begins. Returns whether it has to be refused. */
  fences(lease: Lease): boolean {
    return this.loss.refuses && this.isLost(lease);
  }

  /** Hears that a fence has passed. */
  passed(lease: Lease): void {
    if (this.isLost(lease)) this.hasPassed = true;
  }

  private report(call: WatchedCall, doubt: Doubt | undefined): void {
    const { lostBefore = '', isReached } = this;
    const [step, noticed] = isReached ? [this.loss.lossAt, this.loss.noticed] : [0, false];
    this.unfenced.push({
      ...call,
      why: doubt ?? (isReached ? 'lost' : 'unlocked'),
      lostBefore,
      step,
      noticed,
    });
  }

  private isLost({ parts }: Lease): boolean {
    return parts.some(({ hold }) => this.lost.has(hold.owner));
  }

  private isValid(lease: Lease): boolean {
    return !lease.ending && !this.isLost(lease) && lease.remainingMs() > 0;
  }

  /** A token protects if each later holder of the key has a greater one. */
  private isFenced(leases: readonly Lease[], fences: ReadonlySet<Lease> = new Set()): boolean {
    const lost = leases.filter((lease) => this.isLost(lease));
    const holds = (lost.length > 0 ? lost : leases).flatMap(({ parts }) => parts.map(({ hold }) => hold));
    const owed = holds.length > 0 ? holds : this.isReached ? [...this.lost.values()] : [...this.granted];
    return [...fences].some(({ parts }) =>
      parts.some(({ hold }) => owed.some(({ key, token }) => key === hold.key && hold.token! <= token!)),
    );
  }
}
