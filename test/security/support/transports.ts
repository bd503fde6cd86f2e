import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Body, Controller, Post } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Args, GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { WebSocket } from 'ws';
import { Locked, type RedisLockModuleOptions } from 'nest-redis-lock';
import { LOOPBACK } from '../../support/loopback.js';
import { rootModule, type Apps } from '../../support/nest/apps.js';
import { createHttpApp, listen, startHttp, type Platform } from '../../support/nest/http.js';
import { startTcp } from '../../support/nest/tcp.js';

/*
 * One locked method on every transport, and a client that shows all of an answer as text: what a stranger gets to see.
 */

@Controller()
class UserController {
  @Post('user')
  @Locked('user:<<id>>')
  async http(@Body('id') id: string): Promise<string> {
    return `served ${id}`;
  }

  @MessagePattern('user')
  @Locked('user:<<id>>')
  async message(@Payload('id') id: string): Promise<string> {
    return `served ${id}`;
  }
}

@WebSocketGateway({ path: '/socket' })
class UserGateway {
  @SubscribeMessage('user')
  @Locked('user:<<id>>')
  async socket(@MessageBody('id') id: string): Promise<object> {
    return { event: 'user', data: `served ${id}` };
  }
}

@Resolver()
class UserResolver {
  @Query(() => String)
  @Locked('user:<<id>>')
  async user(@Args('id') id: string): Promise<string> {
    return `served ${id}`;
  }
}

/** Asks for one user, and gives back the whole answer as text, with headers where there are any. */
export type SendRequest = (id: string) => Promise<string>;
type Start = (apps: Apps, options: RedisLockModuleOptions) => Promise<SendRequest>;

const wholeResponse = async (response: Response): Promise<string> =>
  JSON.stringify([response.status, [...response.headers], await response.text()]);

const overHttp =
  (platform: Platform): Start =>
  async (apps, options) => {
    const http = await startHttp(apps, platform, rootModule(options, { controllers: [UserController] }));
    return async (id) => wholeResponse(await http.post('/user', { id }));
  };

const overTcp: Start = async (apps, options) => {
  const client = await startTcp(apps, rootModule(options, { controllers: [UserController] }));
  return (id) => client.send('user', { id }).catch((error: unknown) => error).then((end) => JSON.stringify(end)); // prettier-ignore
};

const overSocket: Start = async (apps, options) => {
  const app = await createHttpApp(apps, 'express', rootModule(options, { providers: [UserGateway] }));
  app.useWebSocketAdapter(new WsAdapter(app));
  await listen(app);
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const socket = new WebSocket(`ws://${LOOPBACK}:${port}/socket`);
  apps.add({ close: async () => socket.terminate() });
  await once(socket, 'open');
  return async (id) => {
    socket.send(JSON.stringify({ event: 'user', data: { id } }));
    const [message] = (await once(socket, 'message')) as [Buffer];
    const response = JSON.parse(message.toString()) as { data: { cause?: unknown } };
    // Nest sends back the data of the client, and only to this client.
    if (isDeepStrictEqual(response.data.cause, { pattern: 'user', data: { id } })) delete response.data.cause;
    return JSON.stringify(response);
  };
};

const overGraphql: Start = async (apps, options) => {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
  const module = rootModule(options, { imports: [graphql], providers: [UserResolver] });
  const http = await startHttp(apps, 'express', module);
  return async (id) =>
    wholeResponse(await http.post('/graphql', { query: `{ user(id: ${JSON.stringify(id)}) }` }));
};

export const TRANSPORTS: Readonly<Record<string, Start>> = {
  'HTTP on Express': overHttp('express'),
  'HTTP on Fastify': overHttp('fastify'),
  'TCP messages': overTcp,
  'a WebSocket': overSocket,
  GraphQL: overGraphql,
};
