const registry = globalThis as unknown as Record<symbol, unknown>;

/**
 * Returns one value for the whole process. The ESM and the CommonJS build can both be loaded in one process, and must
 * share some values: an injection token, an AsyncLocalStorage. The build that is loaded first creates the value.
 */
export const processWide = <T>(name: string, own: T): T =>
  (registry[Symbol.for(`nest-redis-lock@0:${name}`)] ??= own) as T;
