import type { WorkerSettings } from './workload/worker-messages.js';

/** What the workers' apps are set to: short times, so that much happens in a minute. */
export const SETTINGS: WorkerSettings = { keyPrefix: 'lock:', watchdogMs: 1_200, commandTimeoutMs: 300 };

/** Time-out of the sessions in ZooKeeper. Two thirds of it, which are counted on, are no longer than the longest lease. */
export const SESSION_MS = 3_600;

/** What the names of all lines of waiters begin with. */
export const QUEUES = 'nest_redis_lock:queue:';

/** The same of those for read-write locks. */
export const READ_WRITE_QUEUES = 'nest_redis_lock:rw_queue:';

/** The same of fair locks. */
export const FAIR_QUEUES = 'redisson_lock_queue:';

/** What the names of the moments at which who stands in those counts as dead begin with. */
export const FAIR_TIMEOUTS = 'redisson_lock_timeout:';

/** No lease of the workload is longer than this, renewed or not. */
export const LONGEST_LEASE_MS = 2_500;

/**
 * How long after a fault callers may still feel it, in ms: until it is noticed and there is a connection again. What
 * is not listed here may not be felt at all.
 */
export const AFTERMATH = {
  /** A connection that was reset: the first attempt to connect again, and its handshake. */
  cut: 300,
  /** After an outage attempts to connect are up to 500 ms apart, and one may just have begun in vain. */
  outage: 1_100,
  /** A silent command connection is noticed by the next command, within its time-out. */
  silentCommands: SETTINGS.commandTimeoutMs + 500,
  /** A silent subscriber is noticed by its ping, which comes every second. */
  silentSubscriber: 1_000 + SETTINGS.commandTimeoutMs + 400,
  /** A turn that its process does not hear of is found when the place is kept, which is once a second. */
  lostGrant: 1_000 + SETTINGS.commandTimeoutMs,
  /** A process that stood still first has to find out what happened meanwhile. */
  standstill: 300,
} as const;

/** As fast as before so long after the last fault. */
export const RECOVERY_MS = 2_000;
