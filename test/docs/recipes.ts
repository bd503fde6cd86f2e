import { examplesOf, run } from './examples.js';
import { examplesOnPages } from './pages.js';

type Modules = Record<string, unknown>;

/** What examples may import. A process loads only what its examples use: all of it takes seconds. */
const PACKAGES: Readonly<Record<string, () => Promise<unknown>>> = {
  'node:diagnostics_channel': () => import('node:diagnostics_channel'),
  'node:crypto': () => import('node:crypto'),
  'node:timers/promises': () => import('node:timers/promises'),
  '@nestjs/common': () => import('@nestjs/common'),
  '@nestjs/config': () => import('./nestjs-config.js'),
  '@nestjs/core': () => import('@nestjs/core'),
  '@nestjs/graphql': () => import('@nestjs/graphql'),
  '@nestjs/microservices': () => import('@nestjs/microservices'),
  '@nestjs/schedule': () => import('@nestjs/schedule'),
  '@nestjs/testing': () => import('@nestjs/testing'),
  '@nestjs-cls/transactional': () => import('./world.js'),
  cron: () => import('cron'),
  'nestjs-cls': () => import('nestjs-cls'),
  'nest-redis-lock': () => import('nest-redis-lock'),
  'nest-redis-lock/fencing': () => import('nest-redis-lock/fencing'),
  'nest-redis-lock/mysql': () => import('nest-redis-lock/mysql'),
  'nest-redis-lock/postgres': () => import('nest-redis-lock/postgres'),
  'nest-redis-lock/redis': () => import('nest-redis-lock/redis'),
  'nest-redis-lock/store': () => import('nest-redis-lock/store'),
  'nest-redis-lock/testing': () => import('nest-redis-lock/testing'),
  'nest-redis-lock/zookeeper': () => import('nest-redis-lock/zookeeper'),
  'prom-client': () => import('prom-client'),
  rxjs: () => import('rxjs'),
  typeorm: () => import('typeorm'),
  './runner.js': () => import('./runner.js'),
  './world.js': () => import('./world.js'),
};

/** Loads the packages that one of the sources imports. */
export const packagesOf = async (sources: readonly string[]): Promise<Modules> => {
  const used = Object.entries(PACKAGES).filter(([name]) =>
    sources.some((source) => source.includes(` from '${name}'`)),
  );
  return Object.fromEntries(
    await Promise.all(used.map(async ([name, load]) => [name, await load()] as const)),
  );
};

/** Where a server of a test is. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The source with the address of a test's server instead of the one that pages show. */
export const onServer = (source: string, { host, port }: Address): string =>
  source
    .replace('app.listen(3000)', "app.listen(0, '127.0.0.1')")
    .replace('void bootstrap()', 'await bootstrap()')
    .replaceAll('localhost', host)
    .replaceAll('6379', String(port));

/**
 * Runs the code of one page, and returns what it declares.
 *
 * @param change alters the source, as for shorter times.
 */
export const runPage = async (
  path: string,
  server: Address,
  change: (source: string) => string = (source) => source,
): Promise<Modules> => {
  const examples = examplesOf(examplesOnPages().filter(({ page }) => page === path));
  const modules = await packagesOf(examples.map(({ source }) => source));
  const declared: Modules = {};
  for (const { fileName, source } of examples) {
    const exports = await run(change(onServer(source, server)), modules);
    modules[`./${fileName.replace(/\.ts$/, '.js')}`] = exports;
    Object.assign(declared, exports);
  }
  return declared;
};
