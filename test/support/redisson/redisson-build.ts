import { classpathOf } from '../java/java-build.js';

/** The versions of Redisson that tests may ask for. */
export const NEWEST_REDISSON = '4.7.0';
export const OLDER_REDISSON = '3.27.2';

export const REDISSON_PROGRAM = 'RedissonSide';

/** Resolves with the class path of the Java side with this version of Redisson, and builds it first if it has to. */
export const builtWith = (version: string): Promise<string> =>
  classpathOf({ client: 'redisson', version, program: REDISSON_PROGRAM });
