import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { guardProcess } from '../support/process-guard.js';

export const fromRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Builds the library and the sample app when a source has changed since they were built last. */
export const buildSampleApp = (): void => {
  execFileSync(process.execPath, [fromRoot('.ci/setup.mjs'), '--build'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
};

/** The sample app's command line, as `npm start` runs it. */
export class FlashSaleCli {
  stdout = '';
  stderr = '';
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  constructor(args: readonly string[], env: Record<string, string | undefined> = {}) {
    // Only what a test names counts, not the servers and colours of the one who runs the tests.
    const own = {
      REDIS_URL: undefined,
      MYSQL_URL: undefined,
      ZOOKEEPER_CONNECT: undefined,
      DATABASE_URL: undefined,
      FORCE_COLOR: undefined,
    };
    const environment = { ...process.env, ...own, ...env };
    this.child = spawn(process.execPath, [fromRoot('dist/sample-app/cli.js'), ...args], {
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    guardProcess(this.child);
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.child, 'close');
  }

  interrupt(): void {
    this.child.kill('SIGINT');
  }

  /** The exit code; null when a signal ended it. */
  async exitCode(): Promise<number | null> {
    await this.ended;
    return this.child.exitCode;
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
}

/** A new folder for temporary files. */
export const temporaryFolder = (): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), 'nest-redis-lock-demo-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

/** A PATH on which there is Node.js and nothing else. */
export const bareBonesPath = (): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), 'nest-redis-lock-path-'));
  symlinkSync(process.execPath, join(path, 'node'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};
