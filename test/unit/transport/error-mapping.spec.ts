import { HttpException } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { RpcException } from '@nestjs/microservices';
import { WsException } from '@nestjs/websockets';
import { describe, expect, it } from 'vitest';
import {
  LockAbortedError,
  LockConfigurationError,
  LockHttpException,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockStoreError,
  type LockError,
} from 'nest-redis-lock';
import { resolveInterceptor } from '../../../lib/nest/module/redis-lock.options.js';
import { adviseRetry, mapLockError } from '../../../lib/nest/transport/lock-error-mapping.js';

const SECRET = 'user:alice@example.org';
const settings = resolveInterceptor();

/** Every error of the library, and the status it is answered with. */
const ERRORS: readonly [status: number, error: LockError][] = [
  [423, new LockNotAcquiredError('LOCK_TAKEN', `"${SECRET}" is taken`, { key: SECRET })],
  [423, new LockNotAcquiredError('LOCK_QUEUE_FULL', `"${SECRET}" is taken`, { key: SECRET })],
  [500, new LockNotAcquiredError('LOCK_NOT_REENTRANT', `"${SECRET}" is held`, { key: SECRET })],
  [500, new LockLostError('LOCK_LOST', `"${SECRET}" was lost`, { key: SECRET, reason: 'expired' })],
  [503, new LockStoreError(`failed on "${SECRET}"`, 'unknown', { key: SECRET })],
  [500, new LockKeyError(`no key from ${SECRET}`, { key: SECRET })],
  [400, new LockKeyError(`no key from ${SECRET}`, { key: SECRET, clientPlaceholder: '<<id>>' })],
  [500, new LockConfigurationError(`no service for ${SECRET}`)],
  [499, new LockAbortedError('LOCK_ABORTED', `"${SECRET}" was given up`, { key: SECRET })],
  [503, new LockAbortedError('LOCK_SHUTDOWN', `"${SECRET}" was not taken`, { key: SECRET })],
];

class Response {
  headersSent = false;
  readonly headers: Record<string, string> = {};

  setHeader(name: string, value: string): void {
    this.headers[name] = value;
  }
}

const hostOf = (type: string, response: object = new Response()): ExecutionContextHost => {
  const host = new ExecutionContextHost([{}, response]);
  host.setType(type);
  return host;
};

describe.each(ERRORS.map(([status, error]) => [error.code, status, error] as const))(
  '%s',
  (code, status, error) => {
    it(`is answered with ${status} over HTTP`, async () => {
      const mapped = (await mapLockError(error, hostOf('http'), settings)) as LockHttpException;
      expect(mapped).toBeInstanceOf(LockHttpException);
      expect(mapped).toBeInstanceOf(HttpException);
      expect(mapped.getStatus()).toBe(status);
      expect(mapped.getResponse()).toEqual({ statusCode: status, code, message: mapped.message });
      expect(mapped.cause).toBe(error);
    });

    it('is an RpcException with code and status for messages', async () => {
      const mapped = (await mapLockError(error, hostOf('rpc'), settings)) as RpcException;
      expect(mapped).toBeInstanceOf(RpcException);
      expect(mapped.getError()).toMatchObject({ code, status });
      expect(mapped.cause).toBe(error);
    });

    it('is a WsException with code and status for WebSockets', async () => {
      const mapped = (await mapLockError(error, hostOf('ws'), settings)) as WsException;
      expect(mapped).toBeInstanceOf(WsException);
      expect(mapped.getError()).toMatchObject({ code, status });
      expect(mapped.cause).toBe(error);
    });

    it('carries code and status as extensions for GraphQL', async () => {
      const mapped = (await mapLockError(error, hostOf('graphql'), settings)) as LockHttpException;
      expect(mapped.extensions).toEqual({ code, status });
      expect(mapped.cause).toBe(error);
    });

    it.each(['http', 'rpc', 'ws', 'graphql'])('does not tell the key: %s', async (type) => {
      const mapped = await mapLockError(error, hostOf(type), settings);
      const texts = [mapped.message, JSON.stringify(mapped)];
      if (mapped instanceof HttpException) texts.push(JSON.stringify(mapped.getResponse()));
      expect(texts.join()).not.toContain('alice');
    });
  },
);

describe('the message of a mistake of the client', () => {
  it.each(['http', 'graphql', 'rpc', 'ws'])('names the placeholder only: %s', async (type) => {
    const [, error] = ERRORS.find(([status]) => status === 400)!;
    const mapped = await mapLockError(error, hostOf(type), settings);
    expect(mapped.message).toBe('The value of <<id>> is missing or cannot be used.');
  });
});

describe('Retry-After', () => {
  const [, taken] = ERRORS[0]!;
  const [, lost] = ERRORS[3]!;

  it('is set for a taken lock only', () => {
    const [one, two] = [new Response(), new Response()];
    adviseRetry(taken, hostOf('http', one), settings);
    adviseRetry(lost, hostOf('http', two), settings);
    expect([one.headers, two.headers]).toEqual([{ 'Retry-After': '1' }, {}]);
  });

  it.each([
    [undefined, '1'],
    [0, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [3_600_000, '60'],
  ])('is as measured, from 1 to 60 s: %s ms', (retryAfterMs, seconds) => {
    const [measured, fixed] = [new Response(), new Response()];
    const error = Object.assign(new LockNotAcquiredError('LOCK_TAKEN', 'taken'), { retryAfterMs });
    adviseRetry(error, hostOf('http', measured), settings);
    adviseRetry(error, hostOf('http', fixed), resolveInterceptor({ retryAfterSeconds: 7 }));
    expect([measured.headers, fixed.headers]).toEqual([{ 'Retry-After': seconds }, { 'Retry-After': '7' }]);
  });

  it('is left out once the headers have been sent', () => {
    const response = Object.assign(new Response(), { headersSent: true });
    adviseRetry(taken, hostOf('http', response), settings);
    expect(response.headers).toEqual({});
  });

  it('is not needed: a response of an unknown kind harms nothing', () => {
    expect(() => adviseRetry(taken, hostOf('http', {}), settings)).not.toThrow();
  });
});
