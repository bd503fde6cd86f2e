import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { StoreFailure, type StoreOutcome } from '../../core/seam/store-failure.js';

/** Codes of a server's replies. */
export const CODE = {
  connectionLoss: -4,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildrenForEphemerals: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
  notReadOnly: -119,
} as const;

const TEXTS: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(CODE).map(([name, code]) => [code, name]),
);

/** Codes of a server that may answer otherwise later. */
const PASSING = new Set<number>([
  CODE.connectionLoss,
  CODE.sessionMoved,
  CODE.notReadOnly,
  CODE.sessionExpired,
]);

/** A failed request to ZooKeeper. */
export class ZkFailure extends StoreFailure {
  constructor(
    message: string,
    outcome: StoreOutcome,
    options: ConstructorParameters<typeof StoreFailure>[2],
    /** Code of the server's reply; undefined without a reply. */
    readonly code?: number,
  ) {
    super(message, outcome, options);
  }
}

/** Returns the failure of a request that the server has refused: it has changed nothing. */
export const refusedWith = (code: number): ZkFailure =>
  new ZkFailure(
    `ZooKeeper refused: ${TEXTS[code] ?? `error ${code}`}`,
    'not-executed',
    { passing: PASSING.has(code) },
    code,
  );

/** Returns whether a request failed with this code. */
export const hasCode = (failure: unknown, code: number): boolean =>
  failure instanceof ZkFailure && failure.code === code;

/** Returns the handler of a rejection for which a failure with one of these codes has this value. */
export const unless =
  <T>(value: T, ...codes: readonly number[]) =>
  (failure: unknown): T => {
    if (codes.some((code) => hasCode(failure, code))) return value;
    throw failure;
  };

/** Throws a failure again, as a LockConfigurationError if the app has no right to use a node. */
export const lacksRights = (path: string, failure: unknown): never => {
  if (!hasCode(failure, CODE.noAuth)) throw failure;
  throw new LockConfigurationError(
    `ZooKeeper does not let this app use "${path}": its ACL has to grant the rights to create, delete and read to ` +
      'the identity in auth.',
    { cause: failure },
  );
};
