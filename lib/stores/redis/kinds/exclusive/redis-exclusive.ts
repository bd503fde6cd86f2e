import type { ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, KeyState, ReleaseReply } from '../../../../core/seam/reply.js';
import { Script } from '../../connection/script.js';
import type { BatchPart } from '../../connection/script-batch.js';
import type { RedisKind, RedisLink } from '../redis-link.js';
import { readExtend, readForceUnlock, readRelease } from '../shared-replies.js';
import { readAcquire, readInspect } from './replies.js';
import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_EXTEND,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_INSPECT,
  EXCLUSIVE_RELEASE,
} from './scripts.js';

const ACQUIRE: BatchPart = {
  letter: 'a',
  script: new Script(EXCLUSIVE_ACQUIRE, [{ word: 'FENCE', keyOnly: true }]),
  keys: 2,
  args: 3,
};
const RELEASE: BatchPart = { letter: 'r', script: new Script(EXCLUSIVE_RELEASE), keys: 1, args: 3 };
const EXTEND = new Script(EXCLUSIVE_EXTEND);
const INSPECT = new Script(EXCLUSIVE_INSPECT);
const FORCE_UNLOCK = new Script(EXCLUSIVE_FORCE_UNLOCK);

/** What the exclusive lock runs. */
export const EXCLUSIVE_SCRIPTS: readonly Script[] = [
  ACQUIRE.script,
  RELEASE.script,
  EXTEND,
  FORCE_UNLOCK,
  INSPECT,
];
/** What of it can share a request. */
export const EXCLUSIVE_BATCH_PARTS: readonly BatchPart[] = [ACQUIRE, RELEASE];

/** The exclusive lock in Redis: a hash as Redisson's RLock has it. */
export class RedisExclusive implements RedisKind<ExclusiveClaim> {
  readonly inUse = true;

  constructor(private readonly link: RedisLink) {}

  acquire({ finalKey, owner, leaseMs, tokens, rearms }: ExclusiveClaim): Promise<AcquireReply> {
    const { connection, keys, publish } = this.link;
    const name = keys.name(finalKey);
    const fenced = tokens > 0;
    const touched = fenced ? [name, keys.fence(name)] : [name];
    const args = [owner, leaseMs, tokens];
    const read = (reply: unknown) => readAcquire(reply, leaseMs, fenced);
    if (rearms)
      return connection.run(ACQUIRE.script, touched, [...args, keys.lockChannel(name), publish], read);
    const batchKeys = fenced ? undefined : [name, name];
    return connection.runShared({ part: ACQUIRE, keys: touched, batchKeys, args }, read);
  }

  release({ finalKey, owner }: ExclusiveClaim, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    const { link } = this;
    const { connection, keys, publish } = link;
    const { doubt, keepForMs } = how;
    const name = keys.name(finalKey);
    const channel = keys.lockChannel(name);
    const args = [owner, channel, publish];
    const read = (reply: unknown): ReleaseReply => {
      const told = readRelease(reply);
      return { wasHeld: told !== -1, othersWaiting: link.othersTold(told, channel) };
    };
    const send = () =>
      keepForMs === undefined
        ? connection.runShared({ part: RELEASE, keys: [name], batchKeys: undefined, args }, read)
        : connection.run(RELEASE.script, [name], [...args, keepForMs], read);
    return link.releaseAfter(doubt, send);
  }

  extendMany(claims: readonly ExclusiveClaim[]): Promise<readonly ExtendReply[]> {
    const { link } = this;
    return link.inBatches(claims, (batch) => {
      const names = batch.map(({ finalKey }) => link.keys.name(finalKey));
      const args = batch.flatMap(({ owner, leaseMs }) => [owner, leaseMs]);
      return link.connection.run(EXTEND, names, args, (reply) => readExtend(reply, batch.length));
    });
  }

  watch({ finalKey }: ExclusiveClaim, listener: WatchListener): Watch {
    const { keys, subscriber } = this.link;
    return subscriber.watch(keys.lockChannel(keys.name(finalKey)), listener);
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    const { connection, keys } = this.link;
    return connection.run(INSPECT, [keys.name(finalKey)], [], readInspect);
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    const { connection, keys, publish } = this.link;
    const name = keys.name(finalKey);
    return connection.run(FORCE_UNLOCK, [name], [keys.lockChannel(name), publish], readForceUnlock);
  }
}
