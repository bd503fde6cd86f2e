import type { LockKind } from '../../core/kinds/kinds.js';
import type { Claim } from '../../core/seam/claim.js';
import type { LatchStore, SemaphoreStore } from '../../core/seam/object-stores.js';
import type { ProcessNotes } from '../../core/seam/process-notes.js';
import type { Runtime } from '../../core/util/runtime.js';
import { whenReady, type RedisTopology } from './connection/redis-topology.js';
import { AnyKind, FORCE_UNLOCK, type RedisKinds } from './kinds/any-kind.js';
import { EXCLUSIVE_SCRIPTS, RedisExclusive } from './kinds/exclusive/redis-exclusive.js';
import { FAIR_SCRIPTS, RedisFair } from './kinds/fair/redis-fair.js';
import { ForeignHolds } from './kinds/foreign-holds.js';
import { LATCH_SCRIPTS, RedisLatches } from './kinds/latch/redis-latch.js';
import { PERMIT_SCRIPTS, RedisPermit } from './kinds/permit/redis-permit.js';
import { READ_WRITE_SCRIPTS, RedisReadWrite } from './kinds/read-write/redis-read-write.js';
import { RedisLink } from './kinds/redis-link.js';
import { RedisSemaphores, SEMAPHORE_SCRIPTS } from './kinds/semaphore/redis-semaphore.js';
import { NOTE_SCRIPTS, RedisNotes } from './notes.js';
import type { AllNodeKinds, NodeKind } from './quorum/node-store.js';
import type { RedisKeys } from './redis-keys.js';
import { ReplicatedKind } from './replicas/replicated-kind.js';
import { ReplicatedSemaphores } from './replicas/replicated-semaphores.js';
import { Replicas, type ReplicasOptions } from './replicas/replicas.js';

/** Scripts to load on each server. */
export const SCRIPTS = [
  ...EXCLUSIVE_SCRIPTS,
  ...FAIR_SCRIPTS,
  ...PERMIT_SCRIPTS,
  ...READ_WRITE_SCRIPTS,
  ...SEMAPHORE_SCRIPTS,
  ...LATCH_SCRIPTS,
  ...NOTE_SCRIPTS,
  FORCE_UNLOCK,
];

/** Methods that send requests. */
const KIND_METHODS = ['acquire', 'extendMany', 'refreshEntries', 'downgrade', 'commit', 'release'] as const;
const ANY_KIND_METHODS = ['inspect', 'listed', 'waitedFor', 'permits', 'forceUnlock'] as const;
const SEMAPHORE_METHODS = ['take', 'set', 'add', 'free', 'drain', 'remove'] as const;
const LATCH_METHODS = ['set', 'countDown', 'count', 'remove'] as const;
const NOTE_METHODS = ['write', 'read', 'remove', 'send'] as const;

/** Options of a Redis store that change what its kinds do. */
export interface KindOptions {
  /** Whether a string at the name of a lock is a hold of another library. */
  readonly countsStrings: boolean;
  /** Replicas that have to acknowledge a hold; undefined: none. */
  readonly replicas: Required<ReplicasOptions> | undefined;
}

/** What a Redis store keeps on its servers. */
export interface KeptKinds {
  readonly kinds: AllNodeKinds;
  readonly anyKind: AnyKind;
  readonly semaphores: SemaphoreStore;
  readonly latches: LatchStore;
  readonly processes: ProcessNotes;
}

/** Makes what a Redis store keeps: each with its scripts, and around them what the options ask for. */
export const redisKinds = (
  topology: RedisTopology,
  keys: RedisKeys,
  runtime: Runtime,
  { countsStrings, replicas: waited }: KindOptions,
): KeptKinds => {
  const link = new RedisLink(topology, keys, runtime);
  const readWrite = new RedisReadWrite(link);
  const scripts: RedisKinds = {
    exclusive: new RedisExclusive(link),
    fair: new RedisFair(link),
    permit: new RedisPermit(link),
    read: readWrite,
    write: readWrite,
  };
  const replicas = waited && new Replicas(link, waited);
  const kept = <C extends Claim>(name: LockKind, kind: NodeKind<C>): NodeKind<C> => {
    const connected = whenReady(topology, kind, KIND_METHODS);
    // Permits have no holds that another library knows.
    const known = countsStrings && name !== 'permit' ? new ForeignHolds(connected, runtime) : connected;
    return replicas ? new ReplicatedKind(known, replicas) : known;
  };
  const semaphores = whenReady(topology, new RedisSemaphores(link), SEMAPHORE_METHODS);
  return {
    kinds: {
      exclusive: kept('exclusive', scripts.exclusive),
      fair: kept('fair', scripts.fair),
      permit: kept('permit', scripts.permit),
      read: kept('read', scripts.read),
      write: kept('write', scripts.write),
    },
    anyKind: whenReady(topology, new AnyKind(link.commands, scripts, countsStrings), ANY_KIND_METHODS),
    semaphores: replicas ? new ReplicatedSemaphores(semaphores, replicas) : semaphores,
    latches: whenReady<LatchStore>(topology, new RedisLatches(link), LATCH_METHODS),
    processes: whenReady(topology, new RedisNotes(link), NOTE_METHODS),
  };
};
