/**
 * Returns the warning about a server that may delete locks when its memory is full; undefined when it does not. A
 * server or proxy that does not name its policy gives no warning.
 *
 * @param memory reply of INFO memory
 */
export const evictionWarning = (memory: string): string | undefined => {
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  if (!policy || !/^(allkeys|volatile)-/.test(policy)) return undefined;
  return (
    `Redis has maxmemory-policy "${policy}": when its memory is full, it deletes locks that are held, and others get ` +
    `them at the same time. Set it to "noeviction", or keep the locks on a Redis of their own.`
  );
};
