import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { LockPaths } from './lock-path.js';
import type { NodeParents } from './node-parents.js';
import { create, EPHEMERAL, getChildren, getData, remove, sync, type Acl } from './requests.js';
import { CODE, hasCode, lacksRights, unless } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';

export interface ChecksOf {
  readonly session: ZkSession;
  readonly paths: LockPaths;
  readonly parents: NodeParents;
  readonly acls: readonly Acl[];
  /** The time-out that an option asks for. */
  readonly sessionTimeoutMs: number | undefined;
}

/**
 * Checks whether locks can work: the chroot, the rights in the node that contains the locks, and the time-out of the
 * session.
 *
 * @throws {LockConfigurationError} with what to change
 */
export const checkZookeeper = async (of: ChecksOf): Promise<void> => {
  await checkChroot(of);
  checkTimeout(of);
  // With a path for each key, nothing is known of the nodes that contain the locks.
  if (!of.paths.mayNest) await checkRights(of);
};

const checkChroot = async ({ session, paths: { chroot } }: ChecksOf): Promise<void> => {
  // Without one, this only begins the session.
  if (chroot === '') return session.request(sync('/'));
  try {
    await session.request(getData(chroot));
  } catch (failure) {
    // The rights on it are checked where they are needed.
    if (hasCode(failure, CODE.noAuth)) return;
    if (!hasCode(failure, CODE.noNode)) throw failure;
    throw new LockConfigurationError(
      `The chroot "${chroot}" of connect does not exist: create it ("create ${chroot}" in zkCli.sh), or leave it out.`,
      { cause: failure },
    );
  }
};

const checkTimeout = ({ session, sessionTimeoutMs }: ChecksOf): void => {
  const { grantedMs } = session;
  if (sessionTimeoutMs === undefined || sessionTimeoutMs === grantedMs) return;
  throw new LockConfigurationError(
    `sessionTimeoutMs is ${sessionTimeoutMs}, but the servers grant ${grantedMs} ms. Set it to ${grantedMs}, or change ` +
      'minSessionTimeout or maxSessionTimeout of the servers.',
  );
};

/** Does in the node of the locks what each lock does. */
const checkRights = async ({ session, paths: { basePath }, parents, acls }: ChecksOf): Promise<void> => {
  const node = `${basePath === '/' ? '' : basePath}/nest-redis-lock-check-${session.id}`;
  try {
    if (basePath !== '/') await parents.create(basePath, session.timeLimit());
    // Another check of this session may be under way, or was interrupted.
    await session.request(create(node, EPHEMERAL, acls)).catch(unless(undefined, CODE.nodeExists));
    await session.request(getChildren(basePath));
    await session.request(remove(node)).catch(unless(undefined, CODE.noNode));
  } catch (failure) {
    lacksRights(basePath, failure);
  }
};
