// Starting other programs, in the few ways the scripts in this folder need it.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Where a program stands on the PATH; undefined when it is not there. */
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

const outcome = (result, what) => {
  if (result.error) throw new Error(`${what} could not be started: ${result.error.message}`);
  if (result.status === 0) return;
  const how = result.signal ? `was ended by ${result.signal}` : `failed with exit code ${result.status}`;
  const error = new Error(`${what} ${how}`);
  error.output = `${result.stdout ?? ''}${result.stderr ?? ''}`;
  error.status = result.status;
  throw error;
};

/** Runs a program in the repository with its output shown; throws when it fails. */
export const run = (command, args, options = {}) =>
  outcome(
    spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], ...options }),
    options.name ?? [command, ...args].join(' '),
  );

/** Runs a program quietly and returns what it printed; throws, with the output in the error, when it fails. */
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

// Inside a script of npm its own path is in the environment: the same npm then does the nested work.
const npmCommand = () => {
  const script = process.env.npm_execpath;
  return script && /npm-cli\.[cm]?js$/.test(script) ? [process.execPath, [script]] : ['npm', []];
};

/** Runs npm with its output shown. */
export const npm = (...args) => npmWith(process.env, ...args);

/** The same with another environment. */
export const npmWith = (env, ...args) => {
  const [command, first] = npmCommand();
  run(command, [...first, ...args], { env, name: `npm ${args.join(' ')}` });
};

/** Runs npm quietly and returns its standard output. */
export const captureNpm = (args, options) => {
  const [command, first] = npmCommand();
  return capture(command, [...first, ...args], { name: `npm ${args[0]}`, ...options });
};

/** Runs a program of a development dependency, as `npx` does, but never downloads one. */
export const tool = (name, ...args) =>
  run(join(root, 'node_modules', '.bin', name), args, { name: [name, ...args].join(' ') });
