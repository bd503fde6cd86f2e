import { Controller, UsePipes, type PipeTransform } from '@nestjs/common';
import { Ctx, EventPattern, MessagePattern, Payload, TcpContext } from '@nestjs/microservices';
import { describe, expect, it } from 'vitest';
import { Locked } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { startTcp } from '../../support/nest/tcp.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

class Trimming implements PipeTransform {
  transform(value: unknown): unknown {
    return typeof value === 'string' ? value.trim() : value;
  }
}

@Controller()
class OrdersController {
  @MessagePattern('above')
  @UsePipes(Trimming)
  @Locked('order:<<id>>')
  async above(@Payload('id') id: string, @Ctx() context: TcpContext): Promise<object> {
    return { done: await world.work(`order:${id}`), pattern: context.getPattern() };
  }

  @Locked('order:<<id>>')
  @MessagePattern('below')
  @UsePipes(Trimming)
  async below(@Payload('id') id: string, @Ctx() context: TcpContext): Promise<object> {
    return { done: await world.work(`order:${id}`), pattern: context.getPattern() };
  }

  @Locked('event:<<id>>')
  @EventPattern('event')
  async onEvent(@Payload('id') id: string): Promise<void> {
    await world.work(`event:${id}`);
  }
}

const start = () => startTcp(apps, rootModule(world.options(), { controllers: [OrdersController] }));

const isRefused = async (outcome: Promise<unknown>): Promise<void> => {
  await expect(outcome).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
};

describe('a message handler of a TCP microservice', () => {
  it.each(['above', 'below'])(
    'is locked with @MessagePattern %s @Locked, pipes included',
    async (pattern) => {
      const client = await start();
      await world.expectLocked('order:7', () => client.send(pattern, { id: ' 7 ' }), isRefused);
      await expect(client.send(pattern, { id: '7' })).resolves.toEqual({ done: 'done', pattern });
    },
  );

  it('is locked with @EventPattern', async () => {
    const client = await start();
    world.takeRuns();
    client.emit('event', { id: '7' });
    const runs = await until(() => {
      const seen = world.takeRuns();
      return seen.length > 0 && seen;
    });
    expect(runs).toEqual([{ key: 'event:7', locked: true }]);
  });
});
