import { classpathOf } from '../java/java-build.js';

/** The version of Curator that tests run. */
export const NEWEST_CURATOR = '5.9.0';

export const CURATOR_PROGRAM = 'CuratorSide';

/** Resolves with the class path of the Java side with this version of Curator, and builds it first if it has to. */
export const builtWith = (version: string): Promise<string> =>
  classpathOf({ client: 'curator', version, program: CURATOR_PROGRAM });
