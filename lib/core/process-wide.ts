const registry = globalThis as unknown as Record<symbol, unknown>;

/**
 * The ESM and the CommonJS build can both be loaded in one process. What has to be one and the same thing in both
 * (a class that is an injection token, the storage of what runs) is made by whichever comes first.
 */
export const processWide = <T>(name: string, own: T): T =>
  (registry[Symbol.for(`nest-redis-lock@0:${name}`)] ??= own) as T;
