/** Returns the names in Redis of the wait queue of a lock; of permits, the set of their owners. */
export const queueKeysOf = (
  kind: 'exclusive' | 'fair' | 'read-write' | 'permit',
  holdName: string,
): readonly string[] => {
  switch (kind) {
    case 'exclusive':
      return [`nest_redis_lock:queue:{${holdName}}`];
    case 'fair':
      return [`redisson_lock_queue:{${holdName}}`, `redisson_lock_timeout:{${holdName}}`];
    case 'read-write':
      return [`nest_redis_lock:rw_queue:{${holdName}}`];
    case 'permit':
      return [`{${holdName}}:timeout`];
  }
};
