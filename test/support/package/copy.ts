import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { execute } from './command.js';
import { repository } from './pack.js';
import { guardFolder } from '../process-guard.js';

const GIT_TIMEOUT_MS = 30_000;

/** Git as nobody in particular: what the machine's user has set up does not count. */
const GIT_ENV: NodeJS.ProcessEnv = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  ...Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((who) => [
      [`GIT_${who}_NAME`, 'Test'],
      [`GIT_${who}_EMAIL`, 'test@localhost'],
    ]),
  ),
};

/** What a clone does not have. */
const NOT_IN_A_CLONE = ['.git', '.temp', 'coverage', 'dist', 'node_modules', 'reference'];

/** Files of the repository in a temporary folder, as a clone has them, and a link to its node_modules. */
export class Copy implements AsyncDisposable {
  private constructor(readonly folder: string) {}

  /** @param paths files and folders; '.' for all there is. */
  static async of(...paths: readonly string[]): Promise<Copy> {
    const folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-copy-'));
    guardFolder(folder);
    const copy = new Copy(folder);
    try {
      for (const path of paths) {
        const filter = (file: string): boolean => !NOT_IN_A_CLONE.includes(basename(file));
        await cp(join(repository, path), join(folder, path), { recursive: true, filter });
      }
      await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
      return copy;
    } catch (error) {
      await copy[Symbol.asyncDispose]();
      throw error;
    }
  }

  path(...parts: readonly string[]): string {
    return join(this.folder, ...parts);
  }

  async git(...args: readonly string[]): Promise<string> {
    const options = { cwd: this.folder, env: GIT_ENV, timeoutMs: GIT_TIMEOUT_MS };
    return (await execute('git', args, options)).stdout.trim();
  }

  /** Makes a git repository of it, with one commit on `main`. */
  async init(): Promise<void> {
    await this.git('init', '--quiet', '--initial-branch=main');
    await this.git('add', '--all', '--', ':!node_modules');
    await this.commit('chore: begin');
  }

  commit(message: string): Promise<string> {
    return this.git('commit', '--quiet', '--allow-empty', '--cleanup=verbatim', `--message=${message}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
