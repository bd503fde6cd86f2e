import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.js';
import { runPart } from '../part-process.js';
import { ServerFolder } from '../server-folder.js';

/** A session ends up to a tick late. Servers in production have 2,000, and grant no session of two seconds. */
const TICK_MS = 200;
const POLL_MS = 50;
const HOST = '127.0.0.1';

const serves = async (port: number): Promise<boolean> => {
  const socket = connect(port, HOST);
  socket.write('srvr');
  const reply = await text(socket).catch(() => '');
  return reply.includes('Mode: ');
};

/**
 * Runs a ZooKeeper server (the arguments are the path of `java`, and the jars) with a new data folder, and ends it with
 * the demo.
 */
await runPart(async () => {
  const [java = 'java', classPath = ''] = process.argv.slice(2);
  const folder = new ServerFolder('zookeeper');
  const data = join(folder.path, 'data');
  const port = await freePort();
  const settings = {
    ...{ dataDir: data, tickTime: TICK_MS, clientPort: port, clientPortAddress: HOST },
    // In KB: a file of the log takes it at once.
    ...{ 'admin.enableServer': false, '4lw.commands.whitelist': 'srvr', preAllocSize: 1_024 },
  };
  const configuration = join(folder.path, 'zoo.cfg');
  mkdirSync(data);
  writeFileSync(
    configuration,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const machine = ['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData'];
  const properties = [`-Djava.io.tmpdir=${folder.path}`, '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
  const server = folder.runs(
    spawn(java, [...machine, ...properties, '-cp', classPath, main, configuration], {
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  );

  let log = '';
  server.stderr.on('data', (output: Buffer) => (log += output.toString()));
  let failure: Error | undefined;
  server.once('error', (error) => (failure = error));
  server.once('close', () => (failure ??= new Error(`${java} ended: ${log.trim().split('\n').at(-1)}`)));
  while (!(await serves(port))) {
    if (failure) throw failure;
    await sleep(POLL_MS);
  }
  server.once('exit', () => process.exit(1));
  return `${HOST}:${port}`;
});
