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
