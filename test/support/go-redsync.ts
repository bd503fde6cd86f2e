import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onPath } from '../../.ci/process.mjs';
import { within } from './async.js';
import { execute } from './package/command.js';
import { guardProcess } from './process-guard.js';

const FOLDER = fileURLToPath(new URL('../interop/go/', import.meta.url));
/** Downloads the first time. */
const BUILD_MS = 300_000;
const REPLY_MS = 30_000;

/** Whether there is Go on this machine. */
export const hasGo = (): boolean => onPath('go') !== undefined;

/** A Go process with redsync, which does what it is told. It never outlives the test process. */
export class GoRedsync implements AsyncDisposable {
  private readonly waiting: ((line: string) => void)[] = [];

  private constructor(private readonly child: ChildProcessByStdio<Writable, Readable, null>) {
    guardProcess(child);
    createInterface({ input: child.stdout }).on('line', (line) => this.waiting.shift()?.(line));
  }

  /** Builds it, and starts one on these servers, each of which is one by itself. */
  static async start(addresses: readonly string[]): Promise<GoRedsync> {
    const program = join(FOLDER, 'target', 'redsync');
    await execute('go', ['build', '-o', program, '.'], { cwd: FOLDER, timeoutMs: BUILD_MS });
    const go = new GoRedsync(spawn(program, [...addresses], { stdio: ['pipe', 'pipe', 'inherit'] }));
    await go.next();
    return go;
  }

  async lock(name: string, leaseMs: number): Promise<boolean> {
    return (await this.send(`lock ${name} ${leaseMs}`)) === 'true';
  }

  async unlock(name: string): Promise<boolean> {
    return (await this.send(`unlock ${name}`)) === 'true';
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Runs callers, as `test/interop/go/load.go` has it, and returns what they came to. */
  async load<T>(order: object, timeoutMs: number): Promise<T> {
    return JSON.parse(await this.send(`load ${JSON.stringify(order)}`, timeoutMs)) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.stdin.end();
    await within(REPLY_MS, gone, 'the end of the Go side');
  }

  private send(line: string, timeoutMs?: number): Promise<string> {
    const reply = this.next(timeoutMs);
    this.child.stdin.write(`${line}\n`);
    return reply;
  }

  private next(timeoutMs = REPLY_MS): Promise<string> {
    return within(timeoutMs, new Promise<string>((resolve) => this.waiting.push(resolve)), 'the Go side');
  }
}
