import { StoreFailure } from '../../core/seam/store-failure.js';
import type { Runtime } from '../../core/util/runtime.js';
import { NodeQueue } from './lock-nodes.js';
import type { EmptyContainers } from './empty-containers.js';
import { ancestorsOf, type LockPaths } from './lock-path.js';
import { CONTAINER, create, getChildren, remove, type Acl } from './requests.js';
import { CODE, hasCode, unless } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';

/** How often the server may remove an empty container between two requests. */
export const CREATE_TRIES = 5;
/** For how long a node without a lock is not looked at again, in ms. A list is as long as it has keys. */
const FREE_MS = 1_000;

/** Creates the nodes that contain the nodes of locks, as containers: they are removed when they have been empty. */
export class NodeParents {
  /** Nodes in which no lock was found a moment ago. Keys that come once have most of the nodes above them in common. */
  private readonly free = new Set<string>();

  /** @param empty removes what was created here */
  constructor(
    private readonly runtime: Runtime,
    private readonly session: Pick<ZkSession, 'request'>,
    private readonly acls: readonly Acl[],
    private readonly paths: Pick<LockPaths, 'mayNest' | 'basePath'>,
    private readonly empty: Pick<EmptyContainers, 'add'>,
  ) {}

  /**
   * Creates the node of a lock's path, and all above it.
   *
   * @throws {StoreFailure} when one of those is in use as a lock
   */
  async create(path: string, until: number, ofPermits = false): Promise<void> {
    const above = ancestorsOf(path);
    const around = ofPermits ? above.slice(0, -1) : above;
    await Promise.all([
      ...(this.paths.mayNest ? around.map((one) => this.checkNotNested(one, until)) : []),
      ...(ofPermits ? [this.checkParent(path, until)] : []),
    ]);
    // Most of the time only the last one is missing.
    if (await this.createAll([path], until)) return;
    for (let tries = 1; !(await this.createAll([...above, path], until)); tries += 1) {
      if (tries < CREATE_TRIES) continue;
      throw new StoreFailure('The server removes the nodes above the lock all the time', 'not-executed', {
        passing: true,
      });
    }
  }

  /** @throws {StoreFailure} when the node that contains the permits of a key is in use as a lock */
  checkParent(path: string, until: number): Promise<void> {
    const above = ancestorsOf(path).at(-1)!;
    return this.checkNoLock(above, IN_USE, until);
  }

  /** Deletes those that are empty. Resolves with false: none of them was a hold. */
  async remove(paths: readonly string[], until: number): Promise<false> {
    const deletions = paths.map((path) =>
      this.session.request(remove(path), { until }).catch(unless(undefined, CODE.notEmpty, CODE.noNode)),
    );
    for (const deletion of await Promise.allSettled(deletions))
      if (deletion.status === 'rejected') throw deletion.reason;
    return false;
  }

  /** Resolves with false when one of them was removed before the next one was created. */
  private async createAll(paths: readonly string[], until: number): Promise<boolean> {
    for (const path of paths) {
      try {
        await this.session.request(create(path, CONTAINER, this.acls), { until });
        // All keys are in the base path.
        if (!`${this.paths.basePath}/`.startsWith(`${path}/`)) this.empty.add(path);
      } catch (failure) {
        if (hasCode(failure, CODE.noNode)) return false;
        if (!hasCode(failure, CODE.nodeExists)) throw failure;
      }
    }
    return true;
  }

  private async checkNotNested(above: string, until: number): Promise<void> {
    const { free, runtime } = this;
    if (free.has(above)) return;
    await this.checkNoLock(above, NESTED, until);
    free.add(above);
    runtime.setTimer(() => free.delete(above), FREE_MS, true);
  }

  private async checkNoLock(above: string, text: string, until: number): Promise<void> {
    const children = this.session.request(getChildren(above), { until }).catch(unless([], CODE.noNode));
    if (new NodeQueue(await children).nodes.length === 0) return;
    throw new StoreFailure(text, 'not-executed', { keyOnly: true });
  }
}

const NESTED =
  'the path of the key is inside the lock of another key. Locks whose paths contain each other would wait for each other; ' +
  'give each a path of its own';

const IN_USE = 'the key is held as a lock. A key is for permits or for a lock; give each a key of its own';
