import type { Library } from './orders.service.js';

/** Loads the library with its stores: the source or a build by its name, or a broken copy from the URL of its index. */
export const loadLibrary = async (url: string | undefined): Promise<Library> => {
  const [main, redis] = url
    ? [url, new URL('redis/index.js', url).href]
    : ['nest-redis-lock', 'nest-redis-lock/redis'];
  return { ...(await import(main)), ...(await import(redis)) } as Library;
};
