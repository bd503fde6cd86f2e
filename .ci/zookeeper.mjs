// Finds and fetches the jars of a ZooKeeper server, for the tests. Plain Node: it runs before anything is installed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { capture, onPath, root } from './process.mjs';

const PROJECT = join(root, '.ci', 'zookeeper');
const FETCH_LIMIT_MS = 5 * 60_000;

const DEBIAN_FOLDER = '/usr/share/java';
const NETTY = ['buffer', 'codec', 'common', 'handler', 'resolver', 'transport'];
const NETTY_NATIVE = ['transport-native-epoll', 'transport-native-unix-common'];
const DEBIAN_JARS = [
  ...['zookeeper', 'zookeeper-jute', 'slf4j-api', 'slf4j-simple', 'metrics-core', 'snappy-java'],
  ...[...NETTY, ...NETTY_NATIVE].map((name) => `netty-${name}`),
].map((name) => `${name}.jar`);

/** Packages of Debian and Ubuntu with Java and these jars. */
export const ZOOKEEPER_PACKAGES = [
  'default-jre-headless',
  'libzookeeper-java',
  'libslf4j-java',
  'libdropwizard-metrics-java',
  'libsnappy-java',
  'libnetty-java',
];

/** What `fetchZooKeeper` runs. */
export const ZOOKEEPER_FETCH = 'mvn dependency:copy-dependencies in .ci/zookeeper';

/** Returns the folder for the jars. A changed pom has another folder, so that its jars are fetched. */
const jarsFolder = () => {
  const digest = createHash('sha256')
    .update(readFileSync(join(PROJECT, 'pom.xml')))
    .digest('hex');
  return join(PROJECT, 'target', digest.slice(0, 16));
};

const debianClassPath = () => {
  const jars = DEBIAN_JARS.map((name) => join(DEBIAN_FOLDER, name));
  return jars.every((jar) => existsSync(jar)) ? jars.join(delimiter) : undefined;
};

/**
 * Returns the jars of a server, as `java -cp` takes them: in `TEST_ZOOKEEPER_JARS`, fetched by Maven, or of Debian's
 * packages. Undefined when they are not there.
 */
export const zookeeperClassPath = () => {
  const folder = process.env.TEST_ZOOKEEPER_JARS || jarsFolder();
  return existsSync(folder) ? join(folder, '*') : debianClassPath();
};

export const canFetchZooKeeper = () => onPath('java') !== undefined && onPath('mvn') !== undefined;

/** Fetches the jars with Maven. An interrupted download leaves no folder that `zookeeperClassPath` would return. */
export const fetchZooKeeper = () => {
  const folder = jarsFolder();
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  capture('mvn', ['-B', '-q', '-ntp', 'dependency:copy-dependencies', `-DoutputDirectory=${partial}`], {
    cwd: PROJECT,
    timeout: FETCH_LIMIT_MS,
    name: ZOOKEEPER_FETCH,
  });
  renameSync(partial, folder);
};
