import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { UseFilters, UseGuards } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { WebSocket } from 'ws';
import { describe, expect, it } from 'vitest';
import { LockExceptionFilter, Locked } from 'nest-redis-lock';
import { LOOPBACK } from '../../support/loopback.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp, listen } from '../../support/nest/http.js';
import { QuotaGuard } from '../../support/nest/quota-guard.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@WebSocketGateway({ path: '/socket' })
class OrdersGateway {
  @SubscribeMessage('above')
  @Locked('order:<<id>>')
  async above(@MessageBody('id') id: string): Promise<object> {
    return { event: 'sold', data: await world.work(`order:${id}`) };
  }

  @Locked('order:<<id>>')
  @SubscribeMessage('below')
  async below(@MessageBody('id') id: string): Promise<object> {
    return { event: 'sold', data: await world.work(`order:${id}`) };
  }

  @SubscribeMessage('guarded')
  @UseGuards(QuotaGuard)
  @UseFilters(LockExceptionFilter)
  guarded(): object {
    return { event: 'sold' };
  }
}

type Ask = (event: string, data: unknown) => Promise<unknown>;

const start = async (): Promise<Ask> => {
  const app = await createHttpApp(
    apps,
    'express',
    rootModule(world.options(), { providers: [OrdersGateway, QuotaGuard] }),
  );
  app.useWebSocketAdapter(new WsAdapter(app));
  await listen(app);
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const socket = new WebSocket(`ws://${LOOPBACK}:${port}/socket`);
  apps.add({ close: async () => socket.terminate() });
  await once(socket, 'open');
  return async (event, data) => {
    socket.send(JSON.stringify({ event, data }));
    const [message] = (await once(socket, 'message')) as [Buffer];
    return JSON.parse(message.toString()) as unknown;
  };
};

const isRefused = async (outcome: Promise<unknown>): Promise<void> => {
  const answer = await outcome;
  expect(answer).toMatchObject({ event: 'exception', data: { code: 'LOCK_TAKEN', status: 423 } });
  expect(JSON.stringify((answer as { data: { message: string } }).data.message)).not.toContain('order:7');
};

describe('a WebSocket gateway', () => {
  it.each(['above', 'below'])('is locked with @SubscribeMessage %s @Locked', async (event) => {
    const ask = await start();
    await world.expectLocked('order:7', () => ask(event, { id: '7' }), isRefused);
    expect(await ask(event, { id: '7' })).toEqual({ event: 'sold', data: 'done' });
  });

  it('answers with code and status when a guard throws a lock error, with LockExceptionFilter', async () => {
    const ask = await start();
    const free = await world.takeElsewhere('quota:bob');
    await isRefused(ask('guarded', {}));
    await free();
    expect(await ask('guarded', {})).toEqual({ event: 'sold' });
  });
});
