import { HttpException, HttpStatus, type ArgumentsHost } from '@nestjs/common';
import { isTaken, type LockError, type LockErrorCode } from '../core/errors/lock.errors.js';
import type { LockInterceptorOptions } from '../redis-lock.options.js';

type Settings = Required<LockInterceptorOptions>;

/** Messages for clients. They never contain the key, which may name a user. */
const MESSAGES: Record<LockErrorCode, string> = {
  LOCK_TAKEN: 'The resource is busy. Try again shortly.',
  LOCK_QUEUE_FULL: 'The resource is busy. Try again shortly.',
  LOCK_NOT_REENTRANT: 'Internal server error',
  LOCK_LOST: 'Internal server error',
  LOCK_STORE_FAILED: 'The service is temporarily unavailable. Try again shortly.',
  LOCK_KEY_INVALID: 'Internal server error',
  LOCK_CONFIGURATION: 'Internal server error',
  LOCK_ABORTED: 'The request was given up.',
  LOCK_SHUTDOWN: 'This instance is shutting down. Try again.',
};

/** nginx's status "client closed request": the client does not read the reply any more. */
const CLIENT_CLOSED_REQUEST = 499;

const statusOf = (code: LockErrorCode, { takenStatus }: Settings): number => {
  switch (code) {
    case 'LOCK_TAKEN':
    case 'LOCK_QUEUE_FULL':
      return takenStatus;
    case 'LOCK_STORE_FAILED':
    case 'LOCK_SHUTDOWN':
      return HttpStatus.SERVICE_UNAVAILABLE;
    case 'LOCK_ABORTED':
      return CLIENT_CLOSED_REQUEST;
    default:
      return HttpStatus.INTERNAL_SERVER_ERROR;
  }
};

/** HTTP exception for a lock error. `cause` is the lock error, for filters and error trackers. */
export class LockHttpException extends HttpException {
  /** Extensions of GraphQL errors. */
  readonly extensions: { code: LockErrorCode; status: number };

  constructor(
    readonly code: LockErrorCode,
    status: number,
    error: LockError,
    body: object = { statusCode: status, message: MESSAGES[code], code },
  ) {
    super(body, status);
    withCause(this, error);
    this.extensions = { code, status };
  }
}

interface Response {
  headersSent?: boolean;
  sent?: boolean;
  setHeader?(name: string, value: string): unknown;
  header?(name: string, value: string): unknown;
}

type Host = Pick<ArgumentsHost, 'getType' | 'switchToHttp'>;

/** Returns the exception for an HTTP handler, and for other handlers whose HTTP exceptions Nest maps (GraphQL). */
export const httpExceptionOf = (error: LockError, host: Host, settings: Settings): LockHttpException => {
  const { code } = error;
  const status = statusOf(code, settings);
  if (host.getType<string>() !== 'graphql') return new LockHttpException(code, status, error);
  // With a statusCode in its body, Nest's Apollo driver would replace the extensions with its own.
  return new LockHttpException(code, status, error, { message: MESSAGES[code], code });
};

/** Maps a lock error to an exception of the call's transport. */
export const mapLockError = async (error: LockError, host: Host, settings: Settings): Promise<Error> => {
  const { code } = error;
  const body = { status: statusOf(code, settings), code, message: MESSAGES[code] };
  // Optional packages: they are loaded only for a transport that is in use, and so has its package.
  switch (host.getType<string>()) {
    case 'rpc': {
      const { RpcException } = await import('@nestjs/microservices');
      return withCause(new RpcException(body), error);
    }
    case 'ws': {
      const { WsException } = await import('@nestjs/websockets');
      return withCause(new WsException(body), error);
    }
    default:
      return httpExceptionOf(error, host, settings);
  }
};

/**
 * Sets `Retry-After` when a lock is taken. Does nothing if the headers have been sent, as for a stream that has begun.
 */
export const adviseRetry = (error: LockError, host: Host, { retryAfterSeconds }: Settings): void => {
  if (host.getType() !== 'http' || !isTaken(error)) return;
  const response = host.switchToHttp().getResponse<Response>();
  if (response.headersSent || response.sent) return;
  const value = String(retryAfterSeconds);
  if (typeof response.setHeader === 'function') response.setHeader('Retry-After', value);
  else response.header?.('Retry-After', value);
};

/** Sets the cause. Error trackers read it; not enumerable, so it is not serialized with the exception. */
const withCause = <E extends Error>(exception: E, cause: LockError): E =>
  Object.defineProperty(exception, 'cause', {
    value: cause,
    configurable: true,
    writable: true,
    enumerable: false,
  });
