import * as diagnosticsChannel from 'node:diagnostics_channel';
import * as timers from 'node:timers/promises';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import * as schedule from '@nestjs/schedule';
import * as testing from '@nestjs/testing';
import * as lib from 'nest-redis-lock';
import * as libFencing from 'nest-redis-lock/fencing';
import * as libRedis from 'nest-redis-lock/redis';
import * as libStore from 'nest-redis-lock/store';
import * as libTesting from 'nest-redis-lock/testing';
import * as cls from 'nestjs-cls';
import { examplesOf, run } from './examples.js';
import { examplesOnPages } from './pages.js';
import * as world from './world.js';

/** What examples may import. */
export const PACKAGES: Readonly<Record<string, unknown>> = {
  'node:diagnostics_channel': diagnosticsChannel,
  'node:timers/promises': timers,
  '@nestjs/common': common,
  '@nestjs/core': core,
  '@nestjs/schedule': schedule,
  '@nestjs/testing': testing,
  '@nestjs-cls/transactional': { Transactional: world.Transactional },
  'nestjs-cls': cls,
  'nest-redis-lock': lib,
  'nest-redis-lock/fencing': libFencing,
  'nest-redis-lock/redis': libRedis,
  'nest-redis-lock/store': libStore,
  'nest-redis-lock/testing': libTesting,
  './world.js': world,
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
): Promise<Record<string, unknown>> => {
  const modules: Record<string, unknown> = { ...PACKAGES };
  const declared: Record<string, unknown> = {};
  for (const { fileName, source } of examplesOf(examplesOnPages().filter(({ page }) => page === path))) {
    const exports = await run(change(onServer(source, server)), modules);
    modules[`./${fileName.replace(/\.ts$/, '.js')}`] = exports;
    Object.assign(declared, exports);
  }
  return declared;
};
