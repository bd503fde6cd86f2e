import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, type Connection } from 'mysql2/promise';
import { freePort } from '../free-port.js';
import { runPart } from '../part-process.js';
import { ServerFolder } from '../server-folder.js';

/** Statements that make the system's own tables, in the order of MariaDB; from 11 on the names begin with its own. */
const SYSTEM_TABLES = [
  /^(mysql|mariadb)_system_tables\.sql$/,
  /^(mysql|mariadb)_performance_tables\.sql$/,
  /^(mysql|mariadb)_system_tables_data\.sql$/,
  /^maria_add_gis_sp_bootstrap\.sql$/,
];
const POLL_MS = 50;

/** Runs a `mariadbd` (the first argument is its path) with a new data folder, and ends it with the demo. */
await runPart(async () => {
  const [program = 'mariadbd'] = process.argv.slice(2);
  const base = dirname(dirname(program));
  const shares = ['mariadb', 'mysql'].map((name) => join(base, 'share', name));
  const share = shares.find((folder) => existsSync(join(folder, 'charsets')));
  if (!share) throw new Error(`The files that ${program} needs are in none of ${shares.join(', ')}`);
  const folder = new ServerFolder('mysql');
  const socket = join(folder.path, 'socket');
  const port = await freePort();

  let log = '';
  const launch = (...args: readonly string[]): ChildProcess => {
    const paths = [`--basedir=${base}`, `--datadir=${join(folder.path, 'data')}`, `--tmpdir=${folder.path}`];
    const texts = [`--lc-messages-dir=${share}`, `--character-sets-dir=${join(share, 'charsets')}`];
    const user = process.getuid?.() === 0 ? ['--user=root'] : [];
    const server = folder.runs(
      spawn(program, ['--no-defaults', ...paths, ...texts, ...user, ...args], {
        stdio: ['pipe', 'ignore', 'pipe'],
      }),
    );
    server.stderr.on('data', (text: Buffer) => (log += text.toString()));
    return server;
  };
  const ended = (): Error => new Error(`${program} ended: ${log.trim().split('\n').at(-1)}`);

  mkdirSync(join(folder.path, 'data'));
  const bootstrap = launch('--bootstrap', '--innodb-log-file-size=16M');
  const files = readdirSync(share);
  const tables = SYSTEM_TABLES.map((name) => {
    const file = files.find((one) => name.test(one));
    if (!file) throw new Error(`There is no ${name.source} in ${share}`);
    return readFileSync(join(share, file), 'utf8');
  });
  bootstrap.stdin!.end(['create database mysql;', 'use mysql;', ...tables].join('\n'));
  if ((await once(bootstrap, 'exit'))[0] !== 0) throw ended();

  const running = launch(
    ...[`--socket=${socket}`, `--port=${port}`, '--bind-address=127.0.0.1', '--skip-name-resolve'],
  );
  let connection: Connection | undefined;
  while (!connection) {
    if (running.exitCode !== null || running.signalCode !== null) throw ended();
    connection = await createConnection({ socketPath: socket, user: 'root' }).catch(() => undefined);
    if (!connection) await sleep(POLL_MS);
  }
  for (const statement of [
    'CREATE DATABASE locks',
    "CREATE USER 'demo'@'%' IDENTIFIED BY 'demo'",
    "GRANT ALL ON locks.* TO 'demo'@'%'",
  ])
    await connection.query(statement);
  connection.destroy();
  running.once('exit', () => process.exit(1));
  return `mysql://demo:demo@127.0.0.1:${port}/locks`;
});
