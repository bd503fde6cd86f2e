import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Controller, Get, Injectable, Param } from '@nestjs/common';
import { beforeEach, describe, expect, it } from 'vitest';
import { detached, LockService, Locked } from 'nest-redis-lock';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { LOOPBACK } from '../../support/loopback.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp, type HttpClient } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();
/** Opened by the test: the next tick of the poller, the work of the mailer, the answer of the handler. */
let tick: Deferred<void>;
let answer: Deferred<string>;
/** The outcome of the call that is not awaited. */
let outcome: Deferred<unknown>;
let begun: Deferred<void>;
beforeEach(() => {
  [tick, answer, begun] = [deferred(), deferred(), deferred()];
  outcome = deferred();
  world.takeRuns();
});

@Injectable()
class Mailer {
  @Locked('mailbox', { waitMs: 60_000 })
  async send(): Promise<string> {
    return world.work('mailbox');
  }
}

/** Keeps what comes of it for the test. */
const note = (work: Promise<unknown>): void =>
  void work.then(outcome.resolve, (error: unknown) => outcome.resolve(error));

@Controller()
class OrderController {
  constructor(private readonly mailer: Mailer) {}

  /** Starts what goes on after the request, as a poller does that is made when it is first needed. */
  @Get('poll/:id')
  async poll(@Param('id') _id: string): Promise<string> {
    note(tick.promise.then(() => this.mailer.send()));
    begun.resolve();
    return answer.promise;
  }

  @Get('detached/:id')
  async leavesWork(@Param('id') _id: string): Promise<string> {
    detached(() => note(this.mailer.send()));
    begun.resolve();
    return answer.promise;
  }
}

const start = async (platform: (typeof PLATFORMS)[number]) => {
  const metadata = { controllers: [OrderController], providers: [Mailer] };
  const http = await startHttp(apps, platform, rootModule(world.options(), metadata));
  return { http, locks: http.app.get(LockService) };
};

/** A client that asks, and can go away without a word. */
const ask = async (http: HttpClient, path: string): Promise<Socket> => {
  const socket = connect(http.port, LOOPBACK);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`);
  await begun.promise;
  return socket;
};

const leave = async (http: HttpClient, socket: Socket): Promise<void> => {
  socket.destroy();
  const server = http.app.getHttpServer() as {
    getConnections(callback: (error: unknown, count: number) => void): void;
  };
  const connections = () =>
    new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
  await until(async () => (await connections()) === 0, { what: 'the server sees that the client left' });
};

describe.each(PLATFORMS)('a call that is not awaited on %s', (platform) => {
  it.each(['still runs', 'has ended'])(
    'is not given up because a client had left before it began, while the handler %s',
    async (state) => {
      const { http } = await start(platform);
      const socket = await ask(http, '/poll/7');
      await leave(http, socket);
      if (state === 'has ended') {
        answer.resolve('nobody reads this');
        await answer.promise;
      }
      tick.resolve();
      await expect(within(10_000, outcome.promise, 'the call')).resolves.toBe('done');
      expect(world.takeRuns()).toEqual([{ key: 'mailbox', locked: true }]);
      answer.resolve('nobody reads this');
    },
  );

  it('waits on when its request was answered, and the client then closed the connection', async () => {
    const { http, locks } = await start(platform);
    const free = await world.takeElsewhere('mailbox');
    const socket = await ask(http, '/poll/7');
    answer.resolve('done');
    await once(socket, 'data');
    tick.resolve();
    await until(() => locks.usage.leases === 1, { what: 'the call waits' });
    await leave(http, socket);
    await free();
    await expect(within(10_000, outcome.promise, 'the call')).resolves.toBe('done');
  });

  it('waits on when it is detached and the client leaves', async () => {
    const { http, locks } = await start(platform);
    const free = await world.takeElsewhere('mailbox');
    const socket = await ask(http, '/detached/7');
    await until(() => locks.usage.keys === 1, { what: 'the call waits' });
    await leave(http, socket);
    expect(locks.usage.leases).toBe(1);
    await free();
    await expect(within(10_000, outcome.promise, 'the call')).resolves.toBe('done');
    expect(world.takeRuns()).toEqual([{ key: 'mailbox', locked: true }]);
    answer.resolve('nobody reads this');
  });
});
