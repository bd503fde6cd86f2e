import type { DynamicModule, LoggerService, LogLevel } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientProxyFactory, Transport, type ClientProxy } from '@nestjs/microservices';
import { firstValueFrom } from 'rxjs';
import { freePort, LOOPBACK } from '../loopback.js';
import type { Apps } from './apps.js';

/** A client of a microservice. `send` rejects with what the service answered in place of a result. */
export interface TcpClient {
  send(pattern: string, data: unknown): Promise<unknown>;
  emit(pattern: string, data: unknown): void;
}

/** Starts a real TCP microservice on the loopback interface, and connects to it. */
export const startTcp = async (
  apps: Apps,
  module: DynamicModule,
  logger: LoggerService | LogLevel[] = ['fatal'],
): Promise<TcpClient> => {
  // Not port 0: Nest 10 does not say which one it then is.
  const port = await freePort();
  const service = await NestFactory.createMicroservice(module, {
    transport: Transport.TCP,
    options: { host: LOOPBACK, port },
    logger,
    abortOnError: false,
  });
  apps.add(service);
  await service.listen();
  return connectTcp(apps, port);
};

export const connectTcp = (apps: Apps, port: number): TcpClient => {
  const proxy: ClientProxy = ClientProxyFactory.create({
    transport: Transport.TCP,
    options: { host: LOOPBACK, port },
  });
  apps.add({ close: async () => void proxy.close() });
  return {
    send: (pattern, data) => firstValueFrom(proxy.send<unknown>(pattern, data)),
    emit: (pattern, data) => void proxy.emit(pattern, data),
  };
};
