import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { guardProcess } from '../process-guard.js';

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd: string;
  /** Beside the environment of the tests. */
  readonly env?: NodeJS.ProcessEnv;
  /** Ended and failed after this long. */
  readonly timeoutMs: number;
}

/** Error of a program that failed or did not end, with all that it printed. */
export class CommandFailure extends Error {
  constructor(
    message: string,
    readonly output: Output,
  ) {
    super(message);
  }
}

/** Runs a program to its end; throws, with what it printed, when it fails or does not end by itself. */
export const execute = async (
  program: string,
  args: readonly string[],
  { cwd, env, timeoutMs }: CommandOptions,
): Promise<Output> => {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  guardProcess(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  try {
    // 'close' and not 'exit': by then all output has been read.
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0) return output;
    const how = late ? `did not end within ${timeoutMs} ms` : `ended with ${code ?? signal}`;
    const text = `${[program, ...args].join(' ')} ${how}:\n${output.stdout}${output.stderr}`;
    throw new CommandFailure(text, output);
  } finally {
    clearTimeout(timer);
  }
};

/** Runs a script with the Node that runs the tests. */
export const node = (args: readonly string[], options: CommandOptions): Promise<Output> =>
  execute(process.execPath, args, options);

/** On Windows the npm on the PATH is a script for a shell, which `spawn` cannot start. */
const npmOnWindows = (): string | undefined =>
  process.platform === 'win32'
    ? join(dirname(process.execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js')
    : undefined;

/** Runs npm: inside of one of its scripts the same npm, else the one on the PATH. */
export const npm = (args: readonly string[], options: CommandOptions): Promise<Output> => {
  const script = process.env['npm_execpath'] ?? npmOnWindows();
  return script && /npm-cli\.[cm]?js$/.test(script)
    ? node([script, ...args], options)
    : execute('npm', args, options);
};
