import { spawn } from 'node:child_process';
import { freePort } from '../free-port.js';
import { runPart } from '../part-process.js';
import { ServerFolder } from '../server-folder.js';

/** Runs a `redis-server` or `valkey-server` (the first argument is its path), and ends it with the demo. */
await runPart(async () => {
  const [program = 'redis-server'] = process.argv.slice(2);
  const folder = new ServerFolder('redis');
  const port = await freePort();
  const settings = ['--bind', '127.0.0.1', '--port', String(port), '--dir', folder.path];
  const server = folder.runs(
    spawn(program, [...settings, '--save', '', '--appendonly', 'no'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );

  let log = '';
  await new Promise<void>((resolve, reject) => {
    server.stdout.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes('Ready to accept connections')) resolve();
    });
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`${program} ended: ${log.trim().split('\n').at(-1)}`)));
  });
  server.once('exit', () => process.exit(1));
  return `redis://127.0.0.1:${port}`;
});
