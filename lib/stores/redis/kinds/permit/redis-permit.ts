import type { PermitClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  PermitState,
  ReleaseReply,
} from '../../../../core/seam/reply.js';
import type { StoreFailure } from '../../../../core/seam/store-failure.js';
import { Script } from '../../connection/script.js';
import type { BatchPart, PartRun } from '../../connection/script-batch.js';
import { readExtend, readRelease } from '../shared-replies.js';
import type { RedisKind, RedisLink } from '../redis-link.js';
import { readPermitAcquire, readPermitInspect, readPermits } from './replies.js';
import * as scripts from './scripts.js';

const ACQUIRE = new Script(scripts.PERMIT_ACQUIRE, [
  { word: 'PERMITS', plain: true, keyOnly: true, claimOnly: true },
]);
const RELEASE = new Script(scripts.PERMIT_RELEASE, [], 'release');
const EXTEND = new Script(scripts.PERMIT_EXTEND, [], 'renewal');
const INSPECT = new Script(scripts.PERMIT_INSPECT);
export const PERMIT_FORCING: BatchPart = {
  letter: 'p',
  script: new Script(scripts.PERMIT_FORCE_UNLOCK, [], 'woken'),
  keys: 2,
  args: 2,
  shared: 0,
};

export const PERMIT_SCRIPTS: readonly Script[] = [ACQUIRE, RELEASE, EXTEND, PERMIT_FORCING.script, INSPECT];

/** Permits in Redis, with the counter and the sorted set of Redisson's RPermitExpirableSemaphore. */
export class RedisPermit implements RedisKind<PermitClaim> {
  /** True from the first permit that a caller wants. */
  inUse = false;

  constructor(private readonly link: RedisLink) {}

  acquire(claim: PermitClaim): Promise<AcquireReply> {
    this.inUse = true;
    const { finalKey, owner, leaseMs, of } = claim;
    const { commands, publish } = this.link;
    const [counter, set, channel] = this.names(finalKey);
    const args = [owner, leaseMs, of ?? '', channel, publish];
    return commands.run(ACQUIRE, [counter, set], args, (reply) => readPermitAcquire(reply, leaseMs), claim);
  }

  release(
    { finalKey, owner }: PermitClaim,
    { uncertain, keepForMs, until }: ReleaseOptions = {},
  ): Promise<ReleaseReply> {
    const { link } = this;
    const [counter, set, channel] = this.names(finalKey);
    const args = [owner, channel, link.publish, keepForMs ?? ''];
    const read = (reply: unknown): ReleaseReply => {
      const receivers = readRelease(reply);
      return { wasHeld: receivers !== -1, othersWaiting: link.reachesOthers(receivers, channel) };
    };
    return link.releaseAfter(uncertain, finalKey, () =>
      link.commands.run(RELEASE, [counter, set], args, read, { owner, until }),
    );
  }

  extendMany(claims: readonly PermitClaim[]): Promise<readonly ExtendReply[]> {
    return this.link.inBatches(claims, (batch) => {
      const keys = batch.flatMap(({ finalKey }) => this.names(finalKey).slice(0, 2));
      const args = batch.flatMap(({ owner, leaseMs }) => [owner, leaseMs]);
      return this.link.commands.run(EXTEND, keys, args, (reply) => readExtend(reply, batch.length));
    });
  }

  unsent(claim: PermitClaim): StoreFailure | undefined {
    return this.link.unsent(claim);
  }

  watch({ finalKey }: PermitClaim, listener: WatchListener): Watch {
    return this.link.channels.watch(this.names(finalKey)[2], listener);
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.look(finalKey, readPermitInspect);
  }

  /** See `LockStore.permits`. */
  permits(finalKey: string): Promise<PermitState | null> {
    return this.look(finalKey, readPermits);
  }

  forcing(finalKey: string): PartRun {
    const [counter, set, channel] = this.names(finalKey);
    return { part: PERMIT_FORCING, keys: [counter, set], args: [channel, this.link.publish] };
  }

  private look<T>(finalKey: string, read: (reply: unknown) => T): Promise<T> {
    const [counter, set] = this.names(finalKey);
    return this.link.commands.run(INSPECT, [counter, set], [], read);
  }

  private names(finalKey: string): [counter: string, set: string, channel: string] {
    const { keys } = this.link;
    const counter = keys.name(finalKey);
    return [counter, keys.permitSet(counter), keys.permitChannel(counter)];
  }
}
