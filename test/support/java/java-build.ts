import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execute } from '../package/command.js';

/** Downloads the first time. */
const BUILD_TIMEOUT_MS = 300_000;

const project = fileURLToPath(new URL('../../interop/java/', import.meta.url));
const COMMON_SOURCE = 'Side.java';

export interface JavaBuild {
  /** The client of this program, as in `<client>.pom.xml` and in its property `<client>.version`. */
  readonly client: 'curator' | 'redisson';
  readonly version: string;
  /** The class with `main`, which is also the name of its file. */
  readonly program: string;
}

const sourceOf = async (version: string, files: readonly string[]): Promise<string> => {
  const hash = createHash('sha256').update(version);
  for (const file of files) hash.update(await readFile(join(project, file)));
  return hash.digest('hex');
};

/** Resolves with the class path of a program, as `java -cp` takes it. Maven runs once for each version and source. */
export const classpathOf = async ({ client, version, program }: JavaBuild): Promise<string> => {
  const pom = `${client}.pom.xml`;
  const folder = join(project, 'target', `${client}-${version}`);
  const stamp = join(folder, 'built-from');
  const classpath = join(folder, 'classpath');
  const sources = [COMMON_SOURCE, `${program}.java`].map((file) => `src/main/java/${file}`);
  const source = await sourceOf(version, [pom, ...sources]);
  const before = await readFile(stamp, 'utf8').catch(() => undefined);
  if (before !== source) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const settings = [
      `-D${client}.version=${version}`,
      `-Dbuild.folder=${folder}`,
      `-Dmdep.outputFile=${classpath}`,
      '-Dmdep.includeScope=runtime',
    ];
    await execute(
      'mvn',
      ['-B', '-q', '-ntp', '-f', pom, ...settings, 'compile', 'dependency:build-classpath'],
      { cwd: project, timeoutMs: BUILD_TIMEOUT_MS },
    );
    await writeFile(stamp, source);
  }
  return `${join(folder, 'classes')}:${(await readFile(classpath, 'utf8')).trim()}`;
};
