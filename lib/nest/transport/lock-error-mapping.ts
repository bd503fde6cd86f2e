import { HttpException, HttpStatus, type ArgumentsHost } from '@nestjs/common';
import {
  isTaken,
  LockKeyError,
  type LockError,
  type LockErrorCode,
  type LockNotAcquiredError,
} from '../../core/errors/lock.errors.js';
import type { ResolvedInterceptor } from '../module/redis-lock.options.js';

type Settings = ResolvedInterceptor;

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

/** Bounds of a measured `Retry-After`, in seconds. */
const MIN_RETRY_SECONDS = 1;
const MAX_RETRY_SECONDS = 60;

/** Returns the placeholder with an unusable value of the client; undefined for any other error. */
export const clientPlaceholderOf = (error: LockError): string | undefined =>
  error instanceof LockKeyError ? error.clientPlaceholder : undefined;

const messageOf = (error: LockError): string => {
  const placeholder = clientPlaceholderOf(error);
  return placeholder === undefined
    ? MESSAGES[error.code]
    : `The value of ${placeholder} is missing or cannot be used.`;
};

const statusOf = (error: LockError, { takenStatus }: Settings): number => {
  switch (error.code) {
    case 'LOCK_TAKEN':
    case 'LOCK_QUEUE_FULL':
      return takenStatus;
    case 'LOCK_STORE_FAILED':
    case 'LOCK_SHUTDOWN':
      return HttpStatus.SERVICE_UNAVAILABLE;
    case 'LOCK_ABORTED':
      return CLIENT_CLOSED_REQUEST;
    default:
      return clientPlaceholderOf(error) === undefined
        ? HttpStatus.INTERNAL_SERVER_ERROR
        : HttpStatus.BAD_REQUEST;
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
    body: object = { statusCode: status, message: messageOf(error), code },
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
  const status = statusOf(error, settings);
  if (host.getType<string>() !== 'graphql') return new LockHttpException(code, status, error);
  // With a statusCode in its body, Nest's Apollo driver would replace the extensions with its own.
  return new LockHttpException(code, status, error, { message: messageOf(error), code });
};

/** Maps a lock error to an exception of the call's transport. */
export const mapLockError = async (error: LockError, host: Host, settings: Settings): Promise<Error> => {
  const { code } = error;
  const body = { status: statusOf(error, settings), code, message: messageOf(error) };
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
 * Sets `Retry-After` when a lock is taken: the option, else as measured. Does nothing if the headers have been sent, as
 * for a stream that has begun.
 */
export const adviseRetry = (error: LockError, host: Host, { retryAfterSeconds }: Settings): void => {
  if (host.getType() !== 'http' || !isTaken(error)) return;
  const response = host.switchToHttp().getResponse<Response>();
  if (response.headersSent || response.sent) return;
  const value = String(retryAfterSeconds ?? measuredSeconds(error));
  if (typeof response.setHeader === 'function') response.setHeader('Retry-After', value);
  else response.header?.('Retry-After', value);
};

const measuredSeconds = ({ retryAfterMs = 0 }: LockNotAcquiredError): number =>
  Math.min(Math.max(Math.ceil(retryAfterMs / 1_000), MIN_RETRY_SECONDS), MAX_RETRY_SECONDS);

/** Sets the cause. Error trackers read it; not enumerable, so it is not serialized with the exception. */
const withCause = <E extends Error>(exception: E, cause: LockError): E =>
  Object.defineProperty(exception, 'cause', {
    value: cause,
    configurable: true,
    writable: true,
    enumerable: false,
  });
