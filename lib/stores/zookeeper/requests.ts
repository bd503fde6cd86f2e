import type { JuteReader, JuteWriter } from './jute.js';

/** A request, and how its reply is read. */
export interface ZkRequest<T> {
  readonly op: number;
  /** Whether the server replies by itself, also when it has lost the leader. Default: false. */
  readonly isLocal?: boolean;
  write(to: JuteWriter): void;
  read(from: JuteReader): T;
}

/** Rights of an identity on a node. */
export interface Acl {
  readonly rights: number;
  readonly scheme: string;
  readonly id: string;
}

const ALL_RIGHTS = 31;

/** Returns the rights on nodes of the store: of its identity alone, or of all clients. */
export const aclsFor = (hasIdentity: boolean): readonly Acl[] => [
  { rights: ALL_RIGHTS, ...(hasIdentity ? { scheme: 'auth', id: '' } : { scheme: 'world', id: 'anyone' }) },
];

/** Kinds of nodes, as flags of a create. */
export const PERSISTENT = 0;
export const EPHEMERAL = 1;
export const EPHEMERAL_SEQUENTIAL = 3;
export const CONTAINER = 4;

const OP = {
  remove: 2,
  getData: 4,
  setData: 5,
  getChildren: 8,
  sync: 9,
  create: 15,
  createContainer: 19,
};
/** A node of any version. */
const ANY_VERSION = -1;

const nothing = (): void => undefined;

const NO_DATA = Buffer.alloc(0);

/**
 * Creates a node. Resolves with its path, which has a number at its end for a sequential one, and with the
 * number of the change that created it. That grows with each change of the ensemble.
 */
export const create = (
  path: string,
  flags: number,
  acls: readonly Acl[],
  data: Buffer = NO_DATA,
): ZkRequest<{ path: string; created: bigint }> => ({
  op: flags === CONTAINER ? OP.createContainer : OP.create,
  write: (to) =>
    void to
      .text(path)
      .bytes(data)
      .list(acls, ({ rights, scheme, id }) => to.int(rights).text(scheme).text(id))
      .int(flags),
  // It begins what the server says about the node.
  read: (from) => ({ path: from.text(), created: from.long() }),
});

export const remove = (path: string): ZkRequest<void> => ({
  op: OP.remove,
  write: (to) => void to.text(path).int(ANY_VERSION),
  read: nothing,
});

/** With `watched`, the server announces the next change. A node that is not there fails, and is not watched. */
export const getData = (path: string, watched = false): ZkRequest<Buffer> => ({
  op: OP.getData,
  isLocal: true,
  write: (to) => void to.text(path).bool(watched),
  read: (from) => from.bytes(),
});

export const setData = (path: string, data: Buffer): ZkRequest<void> => ({
  op: OP.setData,
  write: (to) => void to.text(path).bytes(data).int(ANY_VERSION),
  read: nothing,
});

/** Resolves with the names of the children, in no order. */
export const getChildren = (path: string, watched = false): ZkRequest<readonly string[]> => ({
  op: OP.getChildren,
  isLocal: true,
  write: (to) => void to.text(path).bool(watched),
  read: (from) => from.list(() => from.text()),
});

/** Lets the server catch up with the leader, so that later reads show what was written before. */
export const sync = (path: string): ZkRequest<void> => ({
  op: OP.sync,
  write: (to) => void to.text(path),
  read: nothing,
});
