import { StoreFailure } from '../../core/seam/store-failure.js';
import { NodeQueue } from './lock-nodes.js';
import type { EmptyContainers } from './empty-containers.js';
import { ancestorsOf, type LockPaths } from './lock-path.js';
import { CONTAINER, create, getChildren, remove, type Acl } from './requests.js';
import { CODE, hasCode, unless } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';

/** How often the server may remove an empty container between two requests. */
export const CREATE_TRIES = 5;

/** Creates the nodes that contain the nodes of locks, as containers: they are removed when they have been empty. */
export class NodeParents {
  /** @param empty removes what was created here */
  constructor(
    private readonly session: ZkSession,
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
    const suspects = this.paths.mayNest ? above : ofPermits ? above.slice(-1) : [];
    const textFor = (one: string): string => (ofPermits && one === above.at(-1) ? IN_USE : NESTED);
    await Promise.all(suspects.map((one) => this.checkNoLock(one, textFor(one), until)));
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
