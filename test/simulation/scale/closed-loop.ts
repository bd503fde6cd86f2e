import type { Lease } from '../../../lib/core/lease/lease.js';
import { Random } from '../engine/random.js';
import { between, jain, perEach, type Cost } from './cost.js';
import { KEY_PREFIX, patient, type Crowd, type Member, type Wanted } from './crowd.js';
import { Inside } from './inside.js';
import { queueKeysOf } from './queue-keys.js';

export type LoopKind = 'exclusive' | 'fair' | 'read-write' | 'permit';

/** How many permits there are, and one of how many callers of a read-write lock writes. */
export const PERMITS = 10;
export const WRITER_OF = 10;
/** How long a caller holds the lock, in ms: a timer, which fires up to 1.2 ms late or 0.9 ms early. */
export const HOLD_MS = 2;

export interface LoopPlan {
  readonly kind: LoopKind;
  readonly processes: number;
  readonly callers: number;
  /** From here on it is measured, in virtual ms. */
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** What a closed loop came to. */
export interface LoopResult {
  readonly plan: LoopPlan;
  readonly locks: number;
  readonly locksPerSecond: number;
  readonly perLock: Cost;
  readonly jain: number;
  /** The longest wait that ended in the measured time or lasts at its end, in ms. */
  readonly longestWaitMs: number;
  /** Callers without a lock in the measured time. */
  readonly unserved: number;
  readonly subscriptions: { readonly channels: number; readonly receivers: number };
  /** Memory of the queue when it was largest, of ten looks, in bytes. */
  readonly queueBytes: number;
  /** Times at which more callers were inside than may be. */
  readonly violations: number;
}

const KEY = 'crowded';
/** How often the memory of the queue is read. */
const LOOKS = 10;

/** One caller: acquires, holds, releases, and at once again. */
interface Loop {
  readonly member: Member;
  served: number;
  waitsFrom: number | undefined;
}

/** Runs callers that all want one key, each again as soon as it has released it. */
export const closedLoop = async (crowd: Crowd, plan: LoopPlan): Promise<LoopResult> => {
  const { agenda, server } = crowd;
  const members = crowd.addMany(plan.processes);
  const inside = new Inside(plan.kind === 'permit' ? PERMITS : 1);
  let isMeasured = false;
  let longestWaitMs = 0;
  const loops: Loop[] = [];

  const run = async (loop: Loop, wantedNext: () => Wanted): Promise<never> => {
    const { process, manager } = loop.member;
    for (;;) {
      const wanted = wantedNext();
      const from = (loop.waitsFrom = agenda.now);
      const lease: Lease = await manager.acquire([KEY], patient(loop.member, wanted));
      inside.enter(wanted.kind);
      loop.waitsFrom = undefined;
      if (isMeasured) {
        longestWaitMs = Math.max(longestWaitMs, agenda.now - from);
        loop.served += 1;
      }
      await process.sleep(HOLD_MS);
      inside.leave(wanted.kind);
      await lease.release();
    }
  };

  const failures: unknown[] = [];
  for (const member of members) {
    for (let c = 0; c < plan.callers; c++) {
      const dice = new Random(`caller ${c} of ${member.process.name}`);
      const loop: Loop = { member, served: 0, waitsFrom: undefined };
      loops.push(loop);
      // Not all in one ms.
      const start = (): void =>
        void run(loop, () => wantedBy(plan.kind, dice)).catch((error: unknown) => failures.push(error));
      agenda.at(dice.between(0, 50), () => member.process.arrive(start));
    }
  }

  const failed = (): boolean => failures.length > 0;
  await agenda.pass(plan.warmUpMs, failed);
  isMeasured = true;
  const before = server.cost;
  let queueBytes = 0;
  for (let i = 1; i <= LOOKS && !failed(); i++) {
    await agenda.pass(plan.warmUpMs + (plan.measuredMs * i) / LOOKS, failed);
    queueBytes = Math.max(queueBytes, server.memoryOf(queueKeysOf(plan.kind, KEY_PREFIX + KEY)));
  }
  if (failed()) throw failures[0];
  const cost = between(before, server.cost);
  const waits = loops.map(({ waitsFrom }) => (waitsFrom === undefined ? 0 : agenda.now - waitsFrom));
  const locks = loops.reduce((sum, { served }) => sum + served, 0);
  const shares = new Map(members.map((member) => [member, 0]));
  for (const { member, served } of loops) shares.set(member, shares.get(member)! + served);
  return {
    plan,
    locks,
    locksPerSecond: (locks / plan.measuredMs) * 1_000,
    perLock: perEach(cost, locks),
    jain: jain([...shares.values()]),
    longestWaitMs: Math.max(longestWaitMs, ...waits),
    unserved: loops.filter(({ served }) => served === 0).length,
    subscriptions: server.subscriptions,
    queueBytes,
    violations: inside.violations,
  };
};

const wantedBy = (kind: LoopKind, dice: Random): Wanted => {
  if (kind === 'permit') return { kind, permits: PERMITS };
  if (kind === 'read-write') return { kind: dice.chance(1 / WRITER_OF) ? 'write' : 'read' };
  return { kind };
};
