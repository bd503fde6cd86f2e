// Starts other programs, in the ways that the scripts in this folder need.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Returns the path of a program on the PATH; undefined when it is not there. */
export const onPath = (...names) => {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        if (statSync(file).isFile()) return file;
      } catch {
        continue;
      }
    }
  }
  return undefined;
};

/** Names of the browser in which pages are tested. */
export const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];

/** Folder of Debian's versions of PostgreSQL, whose programs are not on the PATH. */
const POSTGRES_VERSIONS = '/usr/lib/postgresql';

/**
 * Returns the path of a program of PostgreSQL: in `TEST_POSTGRES_BIN`, of Debian's newest version, or on the PATH.
 * Undefined when it is not there.
 */
export const postgresProgram = (name) => {
  const chosen = process.env.TEST_POSTGRES_BIN;
  const versions = existsSync(POSTGRES_VERSIONS) ? readdirSync(POSTGRES_VERSIONS) : [];
  const newest = versions
    .map(Number)
    .filter(Boolean)
    .sort((a, b) => b - a)[0];
  const folder = chosen || join(POSTGRES_VERSIONS, String(newest), 'bin');
  return [join(folder, name)].find((file) => existsSync(file)) ?? onPath(name);
};

const outcome = (result, what) => {
  if (result.error) throw new Error(`${what} could not be started: ${result.error.message}`);
  if (result.status === 0) return;
  const how = result.signal ? `was ended by ${result.signal}` : `failed with exit code ${result.status}`;
  const error = new Error(`${what} ${how}`);
  error.output = `${result.stdout ?? ''}${result.stderr ?? ''}`;
  error.status = result.status;
  throw error;
};

/** Runs a program in the repository and shows its output; throws when it fails. */
export const run = (command, args, options = {}) =>
  outcome(
    spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], ...options }),
    options.name ?? [command, ...args].join(' '),
  );

/** Runs a program silently and returns its output; throws when it fails, with the output in the error. */
export const capture = (command, args, options = {}) => {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  });
  outcome(result, options.name ?? [command, ...args].join(' '));
  return result.stdout;
};

// Inside a script of npm, the environment has npm's own path. The same npm is then used for nested commands.
const npmCommand = () => {
  const script = process.env.npm_execpath;
  return script && /npm-cli\.[cm]?js$/.test(script) ? [process.execPath, [script]] : ['npm', []];
};

/** Runs npm and shows its output. */
export const npm = (...args) => npmWith(process.env, ...args);

/** Like {@link npm}, with another environment. */
export const npmWith = (env, ...args) => {
  const [command, first] = npmCommand();
  run(command, [...first, ...args], { env, name: `npm ${args.join(' ')}` });
};

/** Runs npm beside others. Resolves with its output, and how it failed; undefined when it did not. */
export const npmAside = (...args) =>
  new Promise((resolve) => {
    const [command, first] = npmCommand();
    const child = spawn(command, [...first, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const add = (chunk) => (output += chunk);
    child.stdout.setEncoding('utf8').on('data', add);
    child.stderr.setEncoding('utf8').on('data', add);
    child.on('error', (error) => resolve({ output, failure: `npm could not be started: ${error.message}` }));
    child.on('close', (status, signal) => {
      const failure = `npm ${args.join(' ')} ended with ${signal ?? status}`;
      resolve({ output, failure: status === 0 ? undefined : failure });
    });
  });

/** Runs npm silently and returns its standard output. */
export const captureNpm = (args, options) => {
  const [command, first] = npmCommand();
  return capture(command, [...first, ...args], { name: `npm ${args[0]}`, ...options });
};

/** Runs a program of a development dependency, like `npx`, but never downloads one. */
export const tool = (name, ...args) =>
  run(join(root, 'node_modules', '.bin', name), args, { name: [name, ...args].join(' ') });
