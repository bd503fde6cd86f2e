import type { LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import type { CallerHost, Served } from '../callers/callers.js';
import type { Holding } from '../callers/witness.js';
import type { ZkLink } from './zk-link.js';
import type { ZkVisit } from './zk-plan.js';

/** A process, and its connections. */
export interface Machine extends Served {
  readonly link: ZkLink;
  /** Whether it has begun to shut down. Its sections go on. */
  isClosing: boolean;
}

/** Codes of calls that came to nothing. */
const REFUSED: Readonly<Record<string, string>> = {
  LOCK_TAKEN: 'taken',
  LOCK_LOST: 'lost at once',
  LOCK_ABORTED: 'aborted',
  LOCK_SHUTDOWN: 'shut down',
};

/** One caller: its visits, one after the other. */
export const callerOf = async (
  machine: Machine,
  visits: readonly ZkVisit[],
  name: string,
  host: ZkCallerHost,
): Promise<void> => {
  for (const visit of visits) {
    if (visit.thinkMs > 0) await machine.process.sleep(visit.thinkMs);
    await visitOnce(machine, visit, name, host);
  }
};

export interface ZkCallerHost extends CallerHost {
  /** How much longer than its wait an acquire may take, in ms. */
  readonly slackMs: number;
}

/** Acquires the key, works, and releases it. */
export const visitOnce = async (
  machine: Machine,
  visit: ZkVisit,
  name: string,
  host: ZkCallerHost,
): Promise<void> => {
  try {
    const wantedSince = machine.process.at;
    const lease = await acquired(machine, visit, name, host);
    const section = new Section(machine, visit, lease);
    const holding = section.enter(name, wantedSince, host);
    await section.work(name, holding, host);
    holding.leaves();
    host.report(await lease.release(), name);
  } catch (error) {
    // The classes of a copy with a mistake are others.
    const { code, outcome } = error as Partial<LockStoreError>;
    if (code === 'LOCK_STORE_FAILED') return host.report(`failed, ${outcome}`, name);
    if (code === undefined || !(code in REFUSED)) throw error;
    host.report(REFUSED[code]!, name);
  }
};

const acquired = async (
  { process, manager }: Machine,
  { key, kind, permits, waitMs, abortMs, leaseMs }: ZkVisit,
  name: string,
  { slackMs, witness }: ZkCallerHost,
): Promise<Lease> => {
  const aborting = new AbortController();
  const call: LockCall = {
    ...{ ...defaultCall(manager.settings), kind, waitMs, leaseMs },
    ...(permits !== undefined && { permits }),
  };
  const timer = abortMs === undefined ? undefined : process.setTimer(() => aborting.abort(), abortMs);
  const since = process.at;
  try {
    return await manager.acquire([key], abortMs === undefined ? call : { ...call, signal: aborting.signal });
  } finally {
    process.clearTimer(timer);
    const tookMs = process.at - since;
    if (tookMs > waitMs + slackMs)
      witness.report('endless', `${name} waits ${tookMs} ms for ${key}, and wanted to wait ${waitMs} ms`);
  }
};

/** What a caller does with its lease. */
class Section {
  private isReader: boolean;
  private validUntil = 0;

  constructor(
    private readonly machine: Machine,
    private readonly visit: ZkVisit,
    private readonly lease: Lease,
  ) {
    this.isReader = visit.kind === 'read';
  }

  enter(name: string, wantedSince: number, { witness }: ZkCallerHost): Holding {
    const { lease, visit } = this;
    return witness.enters({
      ...{ who: name, key: visit.key, permits: visit.permits ?? 1, wantedSince },
      token: this.isReader || visit.permits ? undefined : lease.fencingToken,
      isShared: () => this.isReader,
      validUntil: () => this.believesUntil(),
    });
  }

  async work(name: string, holding: Holding, { random, report }: ZkCallerHost): Promise<void> {
    const { machine, lease, visit } = this;
    const { process } = machine;
    const beganAt = process.now();
    // A section goes on while its app shuts down: its lock is kept until its session ends.
    while ((!lease.lost || machine.isClosing) && process.now() < beganAt + visit.workMs) {
      await process.sleep(Math.min(5 + random.next() * 50, visit.workMs));
      if (lease.remainingMs() > 0 && !this.isReader) holding.writes();
      const isHalfway = process.now() > beganAt + visit.workMs / 2;
      if (!visit.downgrades || this.isReader || !isHalfway || lease.lost) continue;
      this.isReader = true;
      await lease.downgrade().then(
        () => report('downgraded', name),
        (error: unknown) => report(`not downgraded: ${(error as { code?: string }).code}`, name),
      );
    }
  }

  private believesUntil(): number {
    const { machine, lease } = this;
    const { process } = machine;
    if (process.crashed) return 0;
    const leftMs = lease.remainingMs();
    if (leftMs > 0) this.validUntil = process.momentOf(process.now() + leftMs);
    else if (!machine.isClosing) this.validUntil = 0;
    return this.validUntil;
  }
}
