import { PassThrough } from 'node:stream';
import { Controller, Get, Sse, StreamableFile, type MessageEvent } from '@nestjs/common';
import { Observable, of, Subject } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { LockService, Locked } from 'nest-redis-lock';
import { collectUnhandledRejections, until, within } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp, type HttpClient } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();
let file: PassThrough;
let events: Subject<MessageEvent>;
let values: Subject<string>;
beforeEach(() => {
  [file, events, values] = [new PassThrough(), new Subject(), new Subject()];
});

@Controller()
class StreamController {
  @Get('file')
  @Locked('file')
  async file(): Promise<StreamableFile> {
    return new StreamableFile(file);
  }

  @Get('value')
  @Locked('value')
  value(): Observable<string> {
    return values;
  }

  @Get('value-later')
  @Locked('value')
  async valueLater(): Promise<Observable<string>> {
    return values;
  }

  @Sse('events')
  @Locked('events')
  events(): Observable<MessageEvent> {
    return events;
  }

  @Sse('events-later')
  @Locked('events')
  async eventsLater(): Promise<Observable<MessageEvent>> {
    return events;
  }

  @Sse('several')
  @Locked('events')
  several(): Observable<MessageEvent> {
    return of({ data: 'one' }, { data: 'two' });
  }
}

const decoder = new TextDecoder();

/** A response that is read piece by piece, and can be given up. */
const open = async (http: HttpClient, path: string) => {
  const leaving = new AbortController();
  const response = await http.get(path, { signal: leaving.signal });
  const reader = response.body!.getReader();
  return {
    response,
    read: async (): Promise<string> => decoder.decode((await reader.read()).value),
    rest: async (): Promise<string> => {
      let text = '';
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        text += decoder.decode(part.value, { stream: true });
      }
      return text;
    },
    leave: () => leaving.abort(),
  };
};

/** Streams that do not tell of their end with 'close', as those of readable-stream 3, such as archiver's, do not. */
const WITHOUT_CLOSE = [
  ['autoDestroy: false', { autoDestroy: false }],
  ['emitClose: false', { emitClose: false }],
  ['neither', { autoDestroy: false, emitClose: false }],
] as const;

const isFree = (key: string) => until(async () => !(await world.isTaken(key)), { what: `"${key}" is free` });

describe.each(PLATFORMS)('streams over HTTP on %s', (platform) => {
  const start = () =>
    startHttp(apps, platform, rootModule(world.options(), { controllers: [StreamController] }));

  it('a file holds its lock until it has been sent', async () => {
    const http = await start();
    const answer = open(http, '/file');
    await until(() => world.isTaken('file'));
    file.write('first ');
    const { read, rest } = await answer;
    expect(await read()).toBe('first ');
    expect((await http.get('/file')).status).toBe(423);
    file.end('last');
    expect(await rest()).toBe('last');
    await isFree('file');
  });

  it('a file gives its lock back when the client goes away in the middle', async () => {
    const http = await start();
    const answer = open(http, '/file');
    await until(() => world.isTaken('file'));
    file.write('first ');
    const { read, leave } = await answer;
    await read();
    leave();
    await isFree('file');
    expect(file.destroyed).toBe(true);
    expect(http.app.get(LockService).held()).toEqual([]);
  });

  it.each(WITHOUT_CLOSE)(
    'a file that emits no close gives its lock back when it has been sent: %s',
    async (_name, options) => {
      const http = await start();
      for (const text of ['one', 'two']) {
        file = new PassThrough(options);
        file.end(text);
        const response = await http.get('/file');
        expect([response.status, await response.text()]).toEqual([200, text]);
        await isFree('file');
      }
      expect(http.app.get(LockService).held()).toEqual([]);
    },
  );

  it.each(WITHOUT_CLOSE)(
    'a file that emits no close gives its lock back when the client goes away: %s',
    async (_name, options) => {
      const http = await start();
      file = new PassThrough(options);
      const answer = open(http, '/file');
      await until(() => world.isTaken('file'));
      file.write('first ');
      const { read, leave } = await answer;
      await read();
      leave();
      await isFree('file');
    },
  );

  it('an app closes at once after a file that emits no close', async () => {
    const http = await startHttp(
      apps,
      platform,
      rootModule(world.options({ shutdownGraceMs: 60_000 }), { controllers: [StreamController] }),
    );
    file = new PassThrough({ autoDestroy: false, emitClose: false });
    file.end('all');
    expect(await (await http.get('/file')).text()).toBe('all');
    await within(10_000, http.app.close(), 'the close of the app');
  });

  it.each(['/value', '/value-later'])('an Observable holds its lock until it completes: %s', async (path) => {
    const http = await start();
    const answer = http.get(path);
    await until(() => values.observed);
    expect(await world.isTaken('value')).toBe(true);
    values.next('one');
    expect(await world.isTaken('value')).toBe(true);
    values.next('two');
    values.complete();
    expect(await (await answer).text()).toBe('two');
    await isFree('value');
  });

  it.each(['/value', '/value-later'])('an Observable that fails gives its lock back: %s', async (path) => {
    const http = await start();
    const answer = http.get(path);
    await until(() => values.observed);
    values.error(new Error('broken'));
    expect((await answer).status).toBe(500);
    await isFree('value');
  });

  it.each(['/events', '/events-later'])('server-sent events hold their lock to the end: %s', async (path) => {
    const http = await start();
    const answer = open(http, path);
    await until(() => events.observed);
    events.next({ data: 'one' });
    const { read, rest } = await answer;
    while (!(await read()).includes('data: one'));
    expect(await world.isTaken('events')).toBe(true);
    events.complete();
    await rest();
    await isFree('events');
  });

  it.each(['/events', '/events-later'])('the lock is given back when the client leaves: %s', async (path) => {
    const http = await start();
    const answer = open(http, path);
    await until(() => events.observed);
    events.next({ data: 'one' });
    const { leave } = await answer;
    leave();
    await isFree('events');
    expect(events.observed).toBe(false);
  });

  it('all events arrive', async () => {
    const http = await start();
    const { rest } = await open(http, '/several');
    expect(await rest()).toMatch(/data: one\n\n.*data: two\n\n/s);
    await isFree('events');
  });

  it.each(['/events', '/events-later'])(
    'a taken lock is reported without the key, and harms no other request: %s',
    async (path) => {
      const unhandled = collectUnhandledRejections();
      const http = await start();
      const free = await world.takeElsewhere('events');
      const { rest } = await open(http, path);
      const text = await rest();
      expect(text).toContain('The resource is busy');
      expect(text).not.toContain('"events"');
      await free();
      expect((await http.get('/several')).status).toBe(200);
      expect(await unhandled.finish()).toEqual([]);
    },
  );

  it('a client that leaves while its stream waits for the lock leaves nothing waiting', async () => {
    const http = await startHttp(
      apps,
      platform,
      rootModule(world.options({ waitMs: 60_000 }), { controllers: [StreamController] }),
    );
    const locks = http.app.get(LockService);
    const free = await world.takeElsewhere('events');
    const leaving = new AbortController();
    const answer = http.get('/events', { signal: leaving.signal }).catch((error: Error) => error.name);
    await until(() => locks.usage.keys === 1);
    leaving.abort();
    await answer;
    await until(() => locks.usage.leases === 0);
    await free();
    expect(events.observed).toBe(false);
  });
});
