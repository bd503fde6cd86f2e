import type { Runtime } from '../../../core/util/runtime.js';
import { isReplyError, RedisFailure } from '../connection/redis-failure.js';
import type { ClusterServer } from './cluster-server.js';
import { readClusterInfo, readSlots, type ClusterView, type SlotRange } from './slots.js';

/** Time to wait for the other servers after the first reply, in ms: they may know more. */
const OTHERS_MS = 100;

/** A server's view of its cluster. */
export interface ClusterInfo extends ClusterView {
  readonly ranges: readonly SlotRange[];
  /** Whether the servers have sharded Pub/Sub, which came with Redis 7. */
  readonly canShard: boolean;
}

/** Returns the view with the greatest epoch; of equal ones the first. A view of a healthy cluster takes precedence. */
export const bestOf = (infos: readonly ClusterInfo[]): ClusterInfo | undefined =>
  [...infos].sort((a, b) => Number(b.isOk) - Number(a.isOk) || b.epoch - a.epoch)[0];

/**
 * Asks these servers which one has which slots. The view with the greatest epoch counts, because a server that is cut
 * off keeps its old view. Rejects when no server replies.
 */
export const lookAt = async (servers: readonly ClusterServer[], runtime: Runtime): Promise<ClusterInfo> => {
  const seen: ClusterInfo[] = [];
  const failures: unknown[] = [];
  await new Promise<void>((resolve) => {
    let left = servers.length;
    let timer: unknown;
    const end = (): void => {
      runtime.clearTimer(timer);
      resolve();
    };
    for (const server of servers) {
      seenFrom(server)
        .then((info) => {
          seen.push(info);
          timer ??= runtime.setTimer(end, OTHERS_MS);
        })
        .catch((failure: unknown) => failures.push(failure))
        .finally(() => {
          left -= 1;
          if (left === 0) end();
        });
    }
  });
  const best = bestOf(seen);
  // If one server lacks sharded Pub/Sub, listeners on its slots would receive nothing.
  if (best) return { ...best, canShard: seen.every(({ canShard }) => canShard) };
  throw noReplies(failures);
};

const seenFrom = async ({ connection, at }: ClusterServer): Promise<ClusterInfo> => {
  const [ranges, view, canShard] = await Promise.all([
    connection.send({ command: 'cluster', args: ['slots'], read: (reply) => readSlots(reply, at.host) }),
    connection
      .send({ command: 'cluster', args: ['info'], read: readClusterInfo })
      .catch(unlessRefused<ClusterView>({ epoch: 0, isOk: true })),
    connection
      .send({ command: 'pubsub', args: ['shardnumsub'], read: () => true })
      .catch(unlessRefused(false)),
  ]);
  return { ...view, ranges, canShard };
};

/** Handles a refusal: an older server does not know the command, or the user lacks the right. */
const unlessRefused =
  <T>(otherwise: T) =>
  (failure: unknown): T => {
    if (failure instanceof RedisFailure && isReplyError(failure.cause)) return otherwise;
    throw failure;
  };

const noReplies = (failures: readonly unknown[]): RedisFailure => {
  const first = failures.find((failure) => failure instanceof RedisFailure);
  const why = first ? `: ${first.message}` : '';
  return new RedisFailure(`no server of the cluster says which one has which slots${why}`, 'not-executed', {
    cause: first?.cause ?? first,
    passing: failures.some((failure) => failure instanceof RedisFailure && failure.passing),
  });
};
