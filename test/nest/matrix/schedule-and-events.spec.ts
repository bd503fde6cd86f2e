import { Injectable } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { describe, expect, it } from 'vitest';
import { LockService, Locked } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld, type Run } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

const ran = (key: string): Promise<Run[]> =>
  until(() => {
    const runs = world.takeRuns().filter((run) => run.key === key);
    return runs.length > 0 && runs;
  });

const NEVER = '0 0 0 1 1 *';

@Injectable()
class Jobs {
  @Cron(NEVER, { name: 'above' })
  @Locked('Jobs.above', { onBusy: 'skip' })
  async above(): Promise<void> {
    await world.work('Jobs.above');
  }

  @Locked('Jobs.below', { onBusy: 'skip' })
  @Cron(NEVER, { name: 'below' })
  async below(): Promise<void> {
    await world.work('Jobs.below');
  }
}

@Injectable()
class EverySecond {
  @Locked('EverySecond.cron', { onBusy: 'skip' })
  @Cron('* * * * * *')
  async cron(): Promise<void> {
    await world.work('EverySecond.cron');
  }

  @Locked('EverySecond.interval', { onBusy: 'skip' })
  @Interval(20)
  async interval(): Promise<void> {
    await world.work('EverySecond.interval');
  }

  @Locked('EverySecond.timeout', { onBusy: 'skip' })
  @Timeout(1)
  async timeout(): Promise<void> {
    await world.work('EverySecond.timeout');
  }
}

@Injectable()
class Listeners {
  @OnEvent('order.above')
  @Locked('order:<<order.id>>')
  async above(order: { id: string }): Promise<string> {
    return world.work(`order:${order.id}`);
  }

  @Locked('order:<<order.id>>')
  @OnEvent('order.below', { suppressErrors: false })
  async below(order: { id: string }): Promise<string> {
    return world.work(`order:${order.id}`);
  }
}

describe('a scheduled job', () => {
  it.each(['above', 'below'])('is locked with @Cron %s @Locked', async (name) => {
    const app = await apps.context(
      rootModule(world.options(), { imports: [ScheduleModule.forRoot()], providers: [Jobs] }),
    );
    const job = app.get(SchedulerRegistry).getCronJob(name);
    const key = `Jobs.${name}`;
    const free = await world.takeElsewhere(key);
    const busy = new Promise<string>((resolve) => app.get(LockService).on('busy', (e) => resolve(e.key)));
    world.takeRuns();
    await job.fireOnTick();
    expect(await busy).toBe(key);
    expect(world.takeRuns()).toEqual([]);
    await free();
    await job.fireOnTick();
    expect(await ran(key)).toEqual([{ key, locked: true }]);
  });

  it.each(['cron', 'interval', 'timeout'])('runs locked when its time comes: %s', async (name) => {
    const metadata = { imports: [ScheduleModule.forRoot()], providers: [EverySecond] };
    await apps.context(rootModule(world.options(), metadata));
    const key = `EverySecond.${name}`;
    expect((await ran(key))[0]).toEqual({ key, locked: true });
  });
});

describe('an event listener', () => {
  it.each(['above', 'below'])('is locked with @OnEvent %s @Locked', async (name) => {
    const app = await apps.context(
      rootModule(world.options({ waitMs: 5_000 }), {
        imports: [EventEmitterModule.forRoot()],
        providers: [Listeners],
      }),
    );
    await app.init();
    const emitter = app.get(EventEmitter2);
    expect(emitter.listenerCount(`order.${name}`)).toBe(1);
    world.takeRuns();
    const free = await world.takeElsewhere('order:7');
    emitter.emit(`order.${name}`, { id: '7' });
    await until(() => app.get(LockService).usage.keys === 1, { what: 'the listener waits' });
    expect(world.takeRuns()).toEqual([]);
    await free();
    expect(await ran('order:7')).toEqual([{ key: 'order:7', locked: true }]);
  });
});
