import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardFolder } from '../../support/process-guard.js';
import { execute, node, npm, type Output } from '../../support/package/command.js';
import { packLibrary, repository } from '../../support/package/pack.js';

const APPS = join(repository, 'test', 'package', 'apps');

/** How long a test's hook may take; the registry can be slow, and a CI machine's cache empty. */
export const INSTALL_TIMEOUT_MS = 480_000;
/** How long a test may take that compiles and runs an app. */
export const RUN_TIMEOUT_MS = 120_000;
const NPM_TIMEOUT_MS = 420_000;
const STEP_TIMEOUT_MS = 100_000;
/** An app does its work in a second or two, and then has to end by itself. */
const APP_TIMEOUT_MS = 40_000;

const QUICK = ['--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts'];

/**
 * One of `test/package/apps`, in a temporary folder, with the packed library installed from its tarball and all
 * else from the registry, as at a user's.
 *
 * @example
 * await using app = await ConsumerApp.install('nest-12-esm');
 * const { stdout } = await app.run('dist/main.js', { REDIS_URL: server.url });
 */
export class ConsumerApp implements AsyncDisposable {
  private readonly compiled = new Map<string, Promise<Output>>();

  private constructor(private readonly folder: string) {}

  /** @param source folders of `test/package/apps` whose files become the app's own sources, beside `shared` */
  static async install(name: string, ...source: readonly string[]): Promise<ConsumerApp> {
    const folder = await mkdtemp(join(tmpdir(), `nest-redis-lock-${name}-`));
    guardFolder(folder);
    const app = new ConsumerApp(folder);
    try {
      await cp(join(APPS, name), folder, { recursive: true });
      await cp(join(APPS, 'shared'), app.path('src', 'shared'), { recursive: true });
      for (const folder of source) await cp(join(APPS, folder), app.path('src'), { recursive: true });
      const { file } = await packLibrary(folder);
      await app.add(file);
      return app;
    } catch (error) {
      await app[Symbol.asyncDispose]();
      throw error;
    }
  }

  path(...parts: readonly string[]): string {
    return join(this.folder, ...parts);
  }

  /** Whether something is installed under this name. */
  has(name: string): boolean {
    return existsSync(this.path('node_modules', name));
  }

  /** The version of an installed package. */
  async version(name: string): Promise<string> {
    const manifest = await readFile(this.path('node_modules', name, 'package.json'), 'utf8');
    return (JSON.parse(manifest) as { version: string }).version;
  }

  /** Type-checks a project of the app with the app's own TypeScript, and builds it; each project once. */
  compile(project = '.'): Promise<Output> {
    const compiled = this.compiled.get(project) ?? this.tool('typescript/bin/tsc', ['-p', project]);
    this.compiled.set(project, compiled);
    return compiled;
  }

  /** Runs a script of an installed package, by default with the Node that runs the tests. */
  tool(
    script: string,
    args: readonly string[],
    { program = process.execPath, flags = [] }: { program?: string; flags?: readonly string[] } = {},
  ): Promise<Output> {
    const file = this.path('node_modules', ...script.split('/'));
    return execute(program, [...flags, file, ...args], { cwd: this.folder, timeoutMs: STEP_TIMEOUT_MS });
  }

  /**
   * Compiles, and runs a script of the app until it ends by itself. Returns the one line it has to print, parsed; any
   * other line is a warning, and fails.
   */
  async run(script: string, env: NodeJS.ProcessEnv, ...flags: readonly string[]): Promise<unknown> {
    await this.compile();
    const options = { cwd: this.folder, env, timeoutMs: APP_TIMEOUT_MS };
    const { stdout, stderr } = await node([...flags, script], options);
    const lines = stdout.trim().split('\n');
    if (lines.length !== 1 || stderr !== '') {
      throw new Error(`${script} was to print its report and nothing else, but printed:\n${stdout}${stderr}`);
    }
    return JSON.parse(lines[0]!) as unknown;
  }

  private async add(tarball: string): Promise<void> {
    try {
      await npm(['install', ...QUICK, tarball], { cwd: this.folder, timeoutMs: NPM_TIMEOUT_MS });
    } catch (error) {
      throw new Error(
        'npm could not install the library in an app. What npm says may mislead: without the registry and without ' +
          'the packages in its cache it names a conflict.',
        { cause: error },
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
