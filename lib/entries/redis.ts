// Stores on Redis, made by hand. `forRoot({ redis })` needs none of this.
export { QuorumStore, type QuorumStoreOptions } from '../stores/redis/quorum/quorum.store.js';
export { RedisStore, type RedisStoreOptions } from '../stores/redis/redis.store.js';
export type { ForeignHold } from '../core/settings/foreign-hold.js';
export type { ReplicasOptions } from '../stores/redis/replicas/replicas.js';
export type { CreateRedisClient } from '../stores/redis/connection/redis-settings.js';
export type { ClusterLike, RedisClusterOptions } from '../stores/redis/cluster/cluster-settings.js';
export type { RedisSource } from '../stores/redis/topology-of.js';
export type { ConnectionRole, RedisLike } from '../stores/redis/connection/redis-client.js';
