import type { Claim } from '../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../core/seam/lock-store.js';
import type { QueueEntryOutcome } from '../../../core/seam/queue-entry.js';
import type { AcquireReply, ExtendReply, QueueEntryReply, ReleaseReply } from '../../../core/seam/reply.js';
import { relayed } from '../../../core/seam/store-queue-entry.js';
import type { NodeKind } from '../quorum/node-store.js';
import type { Replicas } from './replicas.js';

/**
 * Returns a grant by message as one that is not yet valid. Another process wrote the grant, so this process cannot wait for
 * its replicas. The waiter requests the lock once more and waits for the replicas on its own connection.
 */
const unconfirmed = (outcome: QueueEntryOutcome): QueueEntryOutcome =>
  outcome.status === 'granted' ? { ...outcome, validForMs: 0 } : outcome;

/**
 * A kind of lock whose holds count only once replicas have them: when they are acquired, renewed or downgraded.
 * Releases do not wait for replicas: a hold that comes back after a failover ends with its lease.
 */
export class ReplicatedKind<C extends Claim> implements NodeKind<C> {
  readonly downgrade?: (claim: C) => Promise<ExtendReply>;
  readonly commit?: (claim: C, token: number) => Promise<boolean>;
  readonly refreshEntries?: (claims: readonly C[]) => Promise<readonly QueueEntryReply[]>;

  constructor(
    private readonly kind: NodeKind<C>,
    private readonly replicas: Replicas,
  ) {
    if (kind.downgrade) this.downgrade = (claim) => this.downgradeAs(claim);
    if (kind.commit) this.commit = (claim, token) => this.commitAs(claim, token);
    if (kind.refreshEntries) this.refreshEntries = (claims) => kind.refreshEntries!(claims);
  }

  async acquire(claim: C): Promise<AcquireReply> {
    const confirm = this.replicas.confirming(claim.finalKey);
    const reply = await this.kind.acquire(claim);
    if (reply.status === 'granted') await confirm();
    return reply.status === 'queued' ? { ...reply, entry: relayed(reply.entry, unconfirmed) } : reply;
  }

  async extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]> {
    const confirms = claims.map(({ finalKey }) => this.replicas.confirming(finalKey));
    const replies = await this.kind.extendMany(claims);
    return Promise.all(replies.map((reply, i) => confirmed(reply, confirms[i]!)));
  }

  release(claim: C, how?: ReleaseOptions): Promise<ReleaseReply> {
    return this.kind.release(claim, how);
  }

  watch(claim: C, listener: WatchListener): Watch {
    return this.kind.watch(claim, listener);
  }

  private async downgradeAs(claim: C): Promise<ExtendReply> {
    const confirm = this.replicas.confirming(claim.finalKey);
    const reply = await this.kind.downgrade!(claim);
    if (reply.status === 'held') await confirm();
    return reply;
  }

  private async commitAs(claim: C, token: number): Promise<boolean> {
    const confirm = this.replicas.confirming(claim.finalKey);
    const done = await this.kind.commit!(claim, token);
    if (done) await confirm();
    return done;
  }
}

const confirmed = (reply: ExtendReply, confirm: () => Promise<void>): Promise<ExtendReply> => {
  if (reply.status !== 'held') return Promise.resolve(reply);
  return confirm().then(
    () => reply,
    (cause: unknown) => ({ status: 'failed', cause }),
  );
};
