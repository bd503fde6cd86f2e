import type { LockKind } from '../../core/kinds/kinds.js';

/** Kinds of locks that are kept as nodes in a queue. Their names are Curator's. */
export const MARKS = {
  exclusive: 'lock-',
  permit: 'lease-',
  read: '__READ__',
  write: '__WRIT__',
} as const satisfies Partial<Record<LockKind, string>>;

export type NodeKind = keyof typeof MARKS;

/** Prefix by which a client finds a node that it created without hearing so. */
const PROTECTED = '_c_';
const NODE = /^(?:_c_)?(.*?)-?(lock-|lease-|__READ__|__WRIT__)(-?\d{10,})$/s;

/** A node of a claim: the holder, or a waiter. */
export interface LockNode {
  readonly name: string;
  readonly owner: string;
  readonly kind: NodeKind;
  /** Number in the queue of its path. */
  readonly number: number;
}

/** Returns the name of a claim's node, without its number. */
export const nodeNameOf = (kind: NodeKind, owner: string): string => `${ownerPrefix(owner)}${MARKS[kind]}`;

/** Returns how the names of an owner's nodes begin. */
export const ownerPrefix = (owner: string): string => `${PROTECTED}${owner}-`;

const kindOfMark = (mark: string): NodeKind =>
  (Object.keys(MARKS) as NodeKind[]).find((kind) => MARKS[kind] === mark)!;

/** Returns the node with this name; undefined for a name that is no lock's. */
export const parseNode = (name: string): LockNode | undefined => {
  const [, owner, mark, number] = NODE.exec(name) ?? [];
  if (mark === undefined) return undefined;
  return { name, owner: owner!, kind: kindOfMark(mark), number: Number(number) };
};

/** The number of a downgraded write lock is that of its read lock, too: the writer comes first. */
const inOrder = (a: LockNode, b: LockNode): number =>
  a.number - b.number || Number(b.kind === 'write') - Number(a.kind === 'write');

/** The queue of a path: its nodes in the order of their numbers. */
export class NodeQueue {
  readonly nodes: readonly LockNode[];
  /** A child of the path that is no node of a lock. */
  readonly stranger: string | undefined;

  constructor(children: readonly string[]) {
    const parsed = children.map(parseNode);
    this.nodes = parsed.filter((node) => node !== undefined).sort(inOrder);
    this.stranger = children.find((_, i) => parsed[i] === undefined);
  }

  /** Position of a node; undefined when it is not there. */
  positionOf(name: string): number | undefined {
    const at = this.nodes.findIndex((node) => node.name === name);
    return at < 0 ? undefined : at;
  }

  /**
   * Returns the nodes for which the one at this position waits: a reader for the earlier ones that are no readers, any
   * other one for all earlier ones.
   */
  blockersOf(position: number): readonly LockNode[] {
    const before = this.nodes.slice(0, position);
    const node = this.nodes[position]!;
    if (node.kind !== 'read') return before;
    // Its own writer downgrades it, and keeps out everybody else until then.
    return before.filter(({ kind, number }) => kind !== 'read' && number !== node.number);
  }

  /** The nodes that hold the lock. */
  get holders(): readonly LockNode[] {
    return this.nodes.filter((_, position) => this.blockersOf(position).length === 0);
  }

  /** The nodes that wait. */
  get waiting(): readonly LockNode[] {
    return this.nodes.filter((_, position) => this.blockersOf(position).length > 0);
  }
}
