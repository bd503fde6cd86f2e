import type { WorkerServers } from '../worker-messages.js';
import type { Library } from './orders.service.js';

/** Entry point of a family of stores. */
type Stores = 'redis' | 'mysql' | 'postgres' | 'zookeeper';

/** Returns the family of the stores for these servers. */
export const storesOf = ({ shape }: WorkerServers): Stores =>
  shape === 'mysql' || shape === 'postgres' || shape === 'zookeeper' ? shape : 'redis';

/**
 * Loads the library with a family of its stores: the source or a build by its name, or a broken copy from the URL of its
 * index.
 */
export const loadLibrary = async (url: string | undefined, stores: Stores): Promise<Library> => {
  const [main, entry] = url
    ? [url, new URL(`entries/${stores}.js`, url).href]
    : ['nest-redis-lock', `nest-redis-lock/${stores}`];
  return { ...(await import(main)), ...(await import(entry)) } as Library;
};
