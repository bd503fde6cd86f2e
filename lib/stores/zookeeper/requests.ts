import type { JuteReader, JuteWriter } from './jute.js';

/** A request, and how its reply is read. */
export interface ZkRequest<T> {
  readonly op: number;
  write(to: JuteWriter): void;
  read(from: JuteReader): T;
}

/** What a server says about a node. */
export interface Stat {
  /** Number of the change that created it. Grows with each change of the ensemble. */
  readonly created: bigint;
  /** Number of the change that set its data last. */
  readonly modified: bigint;
  readonly version: number;
  /** Session that owns it; 0 for a node without one. */
  readonly owner: bigint;
  readonly children: number;
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
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  sync: 9,
  create: 15,
  createContainer: 19,
};
/** A node of any version. */
const ANY_VERSION = -1;

const readStat = (from: JuteReader): Stat => {
  const [created, modified] = [from.long(), from.long()];
  // Times of creation and change, by the clock of the server.
  from.long();
  from.long();
  const version = from.int();
  // Versions of the children and of the rights.
  from.int();
  from.int();
  const owner = from.long();
  // Length of the data.
  from.int();
  const children = from.int();
  // Number of the last change of a child.
  from.long();
  return { created, modified, version, owner, children };
};

const nothing = (): void => undefined;

/** Creates a node. Resolves with its path, which has a number at its end for a sequential one. */
export const create = (
  path: string,
  data: Buffer,
  flags: number,
  acls: readonly Acl[],
): ZkRequest<{ path: string; stat: Stat }> => ({
  op: flags === CONTAINER ? OP.createContainer : OP.create,
  write: (to) =>
    void to
      .text(path)
      .bytes(data)
      .list(acls, ({ rights, scheme, id }) => to.int(rights).text(scheme).text(id))
      .int(flags),
  read: (from) => ({ path: from.text(), stat: readStat(from) }),
});

export const remove = (path: string): ZkRequest<void> => ({
  op: OP.remove,
  write: (to) => void to.text(path).int(ANY_VERSION),
  read: nothing,
});

/** With `watched`, the server announces the next change. A node that is not there fails, and is not watched. */
export const getData = (path: string, watched = false): ZkRequest<{ data: Buffer; stat: Stat }> => ({
  op: OP.getData,
  write: (to) => void to.text(path).bool(watched),
  read: (from) => ({ data: from.bytes(), stat: readStat(from) }),
});

export const setData = (path: string, data: Buffer): ZkRequest<Stat> => ({
  op: OP.setData,
  write: (to) => void to.text(path).bytes(data).int(ANY_VERSION),
  read: readStat,
});

/** Resolves with the names of the children, in no order. */
export const getChildren = (path: string, watched = false): ZkRequest<readonly string[]> => ({
  op: OP.getChildren,
  write: (to) => void to.text(path).bool(watched),
  read: (from) => from.list(() => from.text()),
});

/** Lets the server catch up with the leader, so that later reads show what was written before. */
export const sync = (path: string): ZkRequest<void> => ({
  op: OP.sync,
  write: (to) => void to.text(path),
  read: nothing,
});
