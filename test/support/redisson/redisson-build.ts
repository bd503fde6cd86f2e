import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execute } from '../package/command.js';

/** The versions of Redisson that tests may ask for. */
export const NEWEST_REDISSON = '4.7.0';
export const OLDER_REDISSON = '3.27.2';

/** Downloads the first time. */
const BUILD_TIMEOUT_MS = 300_000;

const project = fileURLToPath(new URL('../../interop/java/', import.meta.url));
const SOURCES = ['pom.xml', 'src/main/java/RedissonSide.java'];

const sourceOf = async (version: string): Promise<string> => {
  const hash = createHash('sha256').update(version);
  for (const file of SOURCES) hash.update(await readFile(join(project, file)));
  return hash.digest('hex');
};

/** What to run the Java side with, as `java -cp` takes it. Built once for each version and source; then Maven is not asked. */
export const builtWith = async (version: string): Promise<string> => {
  const folder = join(project, 'target', version);
  const stamp = join(folder, 'built-from');
  const classpath = join(folder, 'classpath');
  const source = await sourceOf(version);
  const before = await readFile(stamp, 'utf8').catch(() => undefined);
  if (before !== source) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const settings = [
      `-Dredisson.version=${version}`,
      `-Dbuild.folder=${folder}`,
      `-Dmdep.outputFile=${classpath}`,
      '-Dmdep.includeScope=runtime',
    ];
    await execute('mvn', ['-B', '-q', '-ntp', ...settings, 'compile', 'dependency:build-classpath'], {
      cwd: project,
      timeoutMs: BUILD_TIMEOUT_MS,
    });
    await writeFile(stamp, source);
  }
  return `${join(folder, 'classes')}:${(await readFile(classpath, 'utf8')).trim()}`;
};
