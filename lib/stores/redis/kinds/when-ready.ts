import type { RedisTopology } from '../connection/redis-topology.js';

/**
 * Returns the target with methods that first wait until it is known how to send requests to the servers. Scripts get
 * the announcing command as an argument, and that depends on it.
 */
export const whenReady = <T extends object>(
  topology: RedisTopology,
  target: T,
  names: readonly (keyof T)[],
): T => {
  if (!topology.hasSlots) return target;
  const own = Object.create(target) as T;
  for (const name of names) {
    const method = target[name] as ((...args: unknown[]) => Promise<unknown>) | undefined;
    if (!method) continue;
    const call = (...args: unknown[]): Promise<unknown> => {
      const ready = topology.ready();
      return ready ? ready.then(() => method.apply(target, args)) : method.apply(target, args);
    };
    Object.defineProperty(own, name, { value: call, configurable: true });
  }
  return own;
};
