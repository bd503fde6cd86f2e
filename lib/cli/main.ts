#!/usr/bin/env node
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { Logger } from '@nestjs/common';
import { createLockService } from '../index.js';
import { parseInvocation, type Invocation } from './arguments.js';
import { EXIT, runCommand, type ExitCode, type Terminal } from './commands.js';
import { failureOf } from './failures.js';
import { HELP } from './help.js';
import { optionsOf } from './open-store.js';
import { passwordsIn, withoutSecrets } from './secrets.js';
import { printable } from './table.js';

const args = process.argv.slice(2);

const secrets = passwordsIn(args);

const note = (text: string): void => void process.stderr.write(withoutSecrets(text, secrets));

/** Resolves with false, too, when the person ends the input or interrupts it. */
const ask = (question: string): Promise<boolean> =>
  new Promise((resolve) => {
    const line = createInterface({ input: process.stdin, output: process.stderr });
    line.once('close', () => resolve(false));
    line.question(question, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      line.close();
    });
  });

const terminal: Terminal = {
  columns: process.stdout.columns,
  out: (text) => void process.stdout.write(text),
  note,
  ask: process.stdin.isTTY && process.stderr.isTTY ? ask : undefined,
};

/** Warnings of the service. They are shown only when the command has worked: its error says the rest. */
const warnings: string[] = [];
const warn = (text: unknown): void => void warnings.push(String(text));
const ignore = (): void => undefined;

const runOn = async (invocation: Invocation): Promise<ExitCode> => {
  const options = await optionsOf(invocation);
  await using locks = await createLockService({ ...options, keyPrefix: invocation.keyPrefix });
  return await runCommand(invocation, locks, terminal);
};

const versionOfPackage = (): string =>
  (createRequire(import.meta.url)('nest-redis-lock/package.json') as { readonly version: string }).version;

const main = async (): Promise<ExitCode> => {
  try {
    const invocation = parseInvocation(args, process.env);
    if (typeof invocation === 'string') {
      terminal.out(invocation === 'help' ? HELP : `${versionOfPackage()}\n`);
      return EXIT.DONE;
    }
    secrets.push(...invocation.secrets);
    const exitCode = await runOn(invocation);
    for (const warning of warnings) note(`warning: ${printable(warning)}\n`);
    return exitCode;
  } catch (error) {
    const { exitCode, text } = failureOf(error);
    note(`nest-redis-lock: ${text}\n`);
    return exitCode;
  }
};

process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // A reader such as `head` may end before the output does.
  if (code === 'EPIPE') return;
  note(`nest-redis-lock: the result cannot be written (${code}).\n`);
  process.exitCode = EXIT.FAILED;
});
process.stderr.on('error', ignore);
Logger.overrideLogger({ log: ignore, warn, error: warn, fatal: warn });
void main().then((exitCode) => (process.exitCode ??= exitCode));
