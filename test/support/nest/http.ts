import type { AddressInfo, Server } from 'node:net';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { expect } from 'vitest';
import { LOOPBACK } from '../loopback.js';
import type { Apps } from './apps.js';

/** The HTTP platforms of Nest: `describe.each(PLATFORMS)`. */
export const PLATFORMS = ['express', 'fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

/** An app that has been made but does not listen yet. */
export const createHttpApp = async (
  apps: Apps,
  platform: Platform,
  module: DynamicModule,
  { forceCloseConnections = true } = {},
): Promise<INestApplication> => {
  const options = { logger: ['fatal' as const], abortOnError: false, forceCloseConnections };
  const app =
    platform === 'express'
      ? await NestFactory.create(module, options)
      : await NestFactory.create(module, new FastifyAdapter({ forceCloseConnections }), options);
  return apps.add(app);
};

/** A client of one app. */
export class HttpClient {
  constructor(
    readonly app: INestApplication,
    readonly port: number,
  ) {}

  get url(): string {
    return `http://${LOOPBACK}:${this.port}`;
  }

  get(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, init);
  }

  post(path: string, body: unknown): Promise<Response> {
    return this.get(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }
}

export const listen = async (app: INestApplication): Promise<HttpClient> => {
  await app.listen(0, LOOPBACK);
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return new HttpClient(app, port);
};

export const startHttp = async (apps: Apps, platform: Platform, module: DynamicModule): Promise<HttpClient> =>
  listen(await createHttpApp(apps, platform, module));

/** For `expectLocked`: over HTTP a taken lock is the answer 423. */
export const answers423 = async (outcome: Promise<unknown>): Promise<void> => {
  expect(((await outcome) as Response).status).toBe(423);
};
