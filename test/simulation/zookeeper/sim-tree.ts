import { CODE } from '../../../lib/stores/zookeeper/zk-failure.js';

/** A change that the ensemble has agreed on. Each server applies all of them, in the same order. */
export type Change =
  | { readonly kind: 'create'; readonly path: string; readonly owner: bigint; readonly isContainer: boolean }
  | { readonly kind: 'delete'; readonly path: string }
  /** A session has ended: its nodes go. */
  | { readonly kind: 'close'; readonly session: bigint }
  /** A new session, or a request that was refused: it has a number, and changes nothing. */
  | { readonly kind: 'nothing' };

/** What clients are told of a change. */
export interface TreeEvent {
  /** 2 deleted, 3 data changed, 4 children changed. */
  readonly type: number;
  readonly path: string;
}

export interface TreeNode {
  readonly created: bigint;
  readonly owner: bigint;
  readonly isContainer: boolean;
  readonly children: Set<string>;
  /** Number of children that were ever created in it. It numbers sequential ones. */
  creations: number;
  /** Number of the last change of a child. */
  childrenChanged: bigint;
}

const DELETED = 2;
const CHILDREN_CHANGED = 4;
const NOTHING: readonly TreeEvent[] = [];

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** The nodes of one server. */
export class SimTree {
  private readonly nodes = new Map<string, TreeNode>([['/', nodeOf(0n, 0n, false)]]);
  private readonly ownedBy = new Map<bigint, Set<string>>();

  get(path: string): TreeNode | undefined {
    return this.nodes.get(path);
  }

  /** Paths of all nodes that a session owns. */
  owned(session: bigint): readonly string[] {
    return [...(this.ownedBy.get(session) ?? [])];
  }

  /** Paths of the containers that had children, and have none. */
  get emptyContainers(): readonly string[] {
    return [...this.nodes]
      .filter(
        ([, { isContainer, children, creations }]) => isContainer && children.size === 0 && creations > 0,
      )
      .map(([path]) => path);
  }

  /** Paths of all nodes with an owner. */
  get ephemerals(): readonly (readonly [path: string, owner: bigint])[] {
    return [...this.nodes].filter(([, { owner }]) => owner !== 0n).map(([path, { owner }]) => [path, owner]);
  }

  /** Returns the code with which a create is refused; undefined when it is not. */
  faultOfCreate(path: string): number | undefined {
    const parent = this.nodes.get(parentOf(path));
    if (!parent) return CODE.noNode;
    if (parent.owner !== 0n) return CODE.noChildrenForEphemerals;
    return this.nodes.has(path) ? CODE.nodeExists : undefined;
  }

  faultOfDelete(path: string): number | undefined {
    const node = this.nodes.get(path);
    if (!node) return CODE.noNode;
    return node.children.size > 0 ? CODE.notEmpty : undefined;
  }

  apply(zxid: bigint, change: Change): readonly TreeEvent[] {
    switch (change.kind) {
      case 'create':
        return this.create(zxid, change);
      case 'delete':
        return this.delete(zxid, change.path);
      case 'close':
        return this.owned(change.session).flatMap((path) => this.delete(zxid, path));
      case 'nothing':
        return NOTHING;
    }
  }

  private create(
    zxid: bigint,
    { path, owner, isContainer }: Change & { kind: 'create' },
  ): readonly TreeEvent[] {
    const parent = this.nodes.get(parentOf(path))!;
    this.nodes.set(path, nodeOf(zxid, owner, isContainer));
    parent.children.add(nameOf(path));
    parent.creations += 1;
    parent.childrenChanged = zxid;
    if (owner !== 0n) this.ownedBy.set(owner, (this.ownedBy.get(owner) ?? new Set()).add(path));
    return [{ type: CHILDREN_CHANGED, path: parentOf(path) }];
  }

  private delete(zxid: bigint, path: string): readonly TreeEvent[] {
    const parent = this.nodes.get(parentOf(path))!;
    this.ownedBy.get(this.nodes.get(path)!.owner)?.delete(path);
    this.nodes.delete(path);
    parent.children.delete(nameOf(path));
    parent.childrenChanged = zxid;
    return [
      { type: DELETED, path },
      { type: CHILDREN_CHANGED, path: parentOf(path) },
    ];
  }
}

const nodeOf = (created: bigint, owner: bigint, isContainer: boolean): TreeNode => ({
  ...{ created, owner, isContainer, children: new Set<string>() },
  ...{ creations: 0, childrenChanged: created },
});
