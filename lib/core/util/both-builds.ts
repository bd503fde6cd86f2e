const values = new Map<string, unknown>();

/**
 * Returns one value for both builds: an injection token, an AsyncLocalStorage of the Nest layer. One process may load
 * that layer as ESM and as CommonJS, and both load this file of the core. The build that is loaded first creates the
 * value. A second copy of the package has a core of its own, and shares nothing.
 */
export const sharedByBuilds = <T>(name: string, own: T): T => {
  if (!values.has(name)) values.set(name, own);
  return values.get(name) as T;
};
