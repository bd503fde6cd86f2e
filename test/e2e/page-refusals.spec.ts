import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Board } from '../../sample-app/src/demo/live/board.js';
import { ActionRefused } from '../../sample-app/src/demo/page/actions.js';
import { frames } from '../../sample-app/src/demo/page/frames.js';
import { PageServer } from '../../sample-app/src/demo/page/page-server.js';
import { until } from '../support/async.js';

const FRAMES_PER_SECOND = 20;

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly host?: string;
}

describe('the server of the page', () => {
  let board: Board;
  let server: PageServer;
  let pressed: string[];
  let address: URL;

  beforeAll(async () => {
    board = new Board(2_000, 'Redis');
    const act = async (action: string, strategy: string): Promise<void> => {
      if (action === 'stop') throw new ActionRefused('No instance has the lock.');
      pressed.push(`${action} ${strategy}`);
    };
    server = await PageServer.start({ board, actions: { act } });
    address = new URL(server.url);
  });
  afterAll(() => server.close());
  beforeEach(() => {
    pressed = [];
  });

  /** Sends a request to the address of the page, and resolves with the head of the reply. */
  const send = ({ method = 'GET', path = '', headers = {}, body, host = address.hostname }: Sent) =>
    new Promise<{
      readonly status?: number;
      readonly headers: Readonly<Record<string, unknown>>;
      readonly text: string;
    }>((resolve, reject) => {
      const json = body === undefined ? {} : { 'content-type': 'application/json' };
      const target = {
        host,
        port: address.port,
        path: path.startsWith('/') ? path : `${address.pathname}${path}`,
      };
      const sent = request({ ...target, method, headers: { host: address.host, ...json, ...headers } });
      sent.once('error', reject);
      sent.once('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          // A stream has no end.
          if (response.headers['content-type']?.startsWith('text/event-stream')) response.destroy();
        });
        response.once('close', () =>
          resolve({ status: response.statusCode, headers: response.headers, text }),
        );
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const press = (action: string, headers: Record<string, string>, body: unknown = {}) =>
    send({ method: 'POST', path: `actions/${action}`, headers, body });

  it('listens on one loopback address, and on no other one', async () => {
    expect(address.hostname).toBe('127.0.0.1');
    await expect(send({ host: '127.0.0.2' })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('serves the page and its stream to a browser that has the address, under both names of the machine', async () => {
    expect(await send({})).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/html; charset=utf-8' },
    });
    expect(await send({ path: 'page.css' })).toMatchObject({ status: 200 });
    expect(await send({ headers: { host: `localhost:${address.port}` } })).toMatchObject({ status: 200 });
    expect((await send({ path: 'events' })).text).toContain('"leaseMs":2000');
  });

  it('has an address that cannot be guessed, and that no other server has', async () => {
    await using other = await PageServer.start({ board: new Board(1, 'Redis') });
    const token = (url: string) => new URL(url).pathname.replaceAll('/', '');
    expect(token(server.url)).toMatch(/^[\w-]{24}$/);
    expect(token(other.url)).not.toBe(token(server.url));
  });

  it.each(['', 'page.css', 'events'])('knows no page under another token: %s', async (path) => {
    for (const token of ['wrong', 'x'.repeat(24), '%00'])
      expect(await send({ path: `/${token}/${path}` })).toMatchObject({ status: 404 });
  });

  it('does nothing for a button under another token', async () => {
    const own = { origin: address.origin };
    const reply = await send({ method: 'POST', path: '/wrong/actions/kill', headers: own, body: {} });
    expect(reply.status).toBe(404);
    expect(pressed).toEqual([]);
  });

  it.each(['', 'page.css', 'events'])('refuses a name that leads to this machine: %s', async (path) => {
    for (const host of ['evil.example', `evil.example:${address.port}`, '127.0.0.1', `127.0.0.1:1`, '[::1]'])
      expect(await send({ path, headers: { host } })).toMatchObject({ status: 403 });
  });

  it('does nothing for a button under another name', async () => {
    const host = `evil.example:${address.port}`;
    expect(await press('kill', { host, origin: `http://${host}` })).toMatchObject({ status: 403 });
    expect(pressed).toEqual([]);
  });

  it('does nothing for a button that is pressed under the other name of this machine', async () => {
    const origin = `http://localhost:${address.port}`;
    expect(await press('kill', { origin })).toMatchObject({ status: 403 });
    expect(pressed).toEqual([]);
  });

  it.each([
    ['no origin', undefined],
    ['a page without an origin', 'null'],
    ['another site', 'https://evil.example'],
    ['another port of this machine', 'http://127.0.0.1:1'],
  ])('does nothing for a button that is pressed by %s', async (_what, origin) => {
    expect(await press('kill', origin === undefined ? {} : { origin })).toMatchObject({ status: 403 });
    expect(pressed).toEqual([]);
  });

  it('sends its stream to no other site', async () => {
    const headers = { origin: 'https://evil.example' };
    expect(await send({ path: 'events', headers })).toMatchObject({ status: 403 });
  });

  it('does what a button of its page says', async () => {
    const own = { origin: address.origin };
    expect(await press('kill', own)).toMatchObject({ status: 204 });
    expect(await press('open', own, { strategy: 'none' })).toMatchObject({ status: 204 });
    expect(pressed).toEqual(['kill locked', 'open none']);
  });

  it('says why a button did nothing', async () => {
    const { status, text } = await press('stop', { origin: address.origin });
    expect(status).toBe(409);
    expect(text).toContain('No instance has the lock.');
  });

  it('takes buttons by POST only, and no others than it has', async () => {
    const own = { origin: address.origin };
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect(await send({ method, path: 'actions/kill', headers: own })).toMatchObject({ status: 404 });
    expect(await press('reboot', own)).toMatchObject({ status: 404 });
    expect(await press('open', own, { strategy: 'hope' })).toMatchObject({ status: 400 });
    expect(await press('open', own, { signal: 'SIGKILL' })).toMatchObject({ status: 400 });
    expect(pressed).toEqual([]);
  });

  it('has no buttons where it only shows a run', async () => {
    await using other = await PageServer.start({ board: new Board(1, 'Redis') });
    const { origin } = new URL(other.url);
    const reply = await fetch(`${other.url}actions/kill`, { method: 'POST', headers: { origin } });
    expect(reply.status).toBe(409);
    expect(await reply.text()).toContain('only shows a run');
  });

  it.each(['../package.json', '..%2fmain.ts', 'tsconfig.json', 'page.ts', 'toString'])(
    'serves only the files of the page, not %s',
    async (path) => {
      expect((await send({ path })).status).toBe(404);
    },
  );

  it('lets no site show it in a frame, and no script of another one run in it', async () => {
    const { headers } = await send({});
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
  });
});

describe('the frames of the page', () => {
  it('are at most 20 in a second whatever happens, and the last one comes at once', async () => {
    const board = new Board(2_000, 'Redis');
    let received = 0;
    let isLast = false;
    let changes = 0;
    const startedAt = performance.now();
    const subscription = frames(board).subscribe({
      next: (snapshot) => {
        received += 1;
        isLast = snapshot.isLast;
      },
    });
    await until(() => {
      for (let i = 0; i < 100; i += 1) board.inspected(undefined, 0);
      changes += 100;
      return performance.now() - startedAt > 1_000;
    });
    board.end();
    await until(() => isLast);
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(changes).toBeGreaterThan(1_000);
    expect(received).toBeLessThanOrEqual(Math.ceil(seconds * FRAMES_PER_SECOND) + 1);
    expect(subscription.closed).toBe(true);
  });
});
