import {
  Logger,
  type DynamicModule,
  type INestApplicationContext,
  type LogLevel,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { afterEach } from 'vitest';
import { RecordingLogger } from './recording-logger.js';

/** A root module with the locks and what a test adds. */
export const rootModule = (
  options: RedisLockModuleOptions,
  metadata: ModuleMetadata = {},
): DynamicModule => ({
  module: class AppModule {},
  ...metadata,
  imports: [RedisLockModule.forRoot(options), ...(metadata.imports ?? [])],
});

/** Apps that are closed together. */
export class Apps {
  private readonly open: { close(): Promise<void> }[] = [];

  add<T extends { close(): Promise<void> }>(app: T): T {
    this.open.push(app);
    return app;
  }

  /** An app without a transport, and without a word: what it has to say, a test sees as an error. */
  async context(module: DynamicModule, logger: LogLevel[] = ['fatal']): Promise<INestApplicationContext> {
    return this.add(await NestFactory.createApplicationContext(module, { logger, abortOnError: false }));
  }

  /** Starts an app, and gives back what it warned of. */
  async warningsOf(module: DynamicModule): Promise<string[]> {
    const logger = new RecordingLogger();
    this.add(await NestFactory.createApplicationContext(module, { logger }));
    // Nest keeps it for all apps that come.
    Logger.overrideLogger(['fatal']);
    return logger.warnings;
  }

  async close(): Promise<void> {
    for (const app of this.open.splice(0).reverse()) await app.close();
  }
}

/** The apps of a file, closed after each of its tests. */
export const useApps = (): Apps => {
  const apps = new Apps();
  afterEach(() => apps.close());
  return apps;
};
