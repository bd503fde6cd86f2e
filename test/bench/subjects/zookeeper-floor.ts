import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import {
  aclsFor,
  CONTAINER,
  create,
  EPHEMERAL_SEQUENTIAL,
  getChildren,
  PERSISTENT,
  remove,
} from '../../../lib/stores/zookeeper/requests.js';
import { CODE, hasCode } from '../../../lib/stores/zookeeper/zk-failure.js';
import { ZkSession } from '../../../lib/stores/zookeeper/zk-session.js';
import { dialerOf, parseConnect } from '../../../lib/stores/zookeeper/zookeeper-options.js';
import { ZOOKEEPER, type Section, type Subject } from './subject.js';

const BASE = '/floor';
const COMMAND_TIMEOUT_MS = 4_000;

/**
 * The lower bound on ZooKeeper: the client of this library, which sends the requests of Curator's recipe. Create and list
 * go out together, as the store sends them. Nothing else: no token, no order, no watch, no options, no second try.
 */
export const zookeeperFloor: Subject = {
  name: 'zookeeper-floor',
  insideScripts: [],
  async open({ url }) {
    const session = new ZkSession({
      runtime: systemRuntime(),
      servers: parseConnect(url.slice(ZOOKEEPER.length)).servers.map((server) => dialerOf(server, undefined)),
      auth: () => [],
      commandTimeoutMs: COMMAND_TIMEOUT_MS,
    });
    const acls = aclsFor(false);
    const made = async (path: string, kind: number): Promise<void> => {
      await session.request(create(path, kind, acls)).catch((failure: unknown) => {
        if (!hasCode(failure, CODE.nodeExists)) throw failure;
      });
    };
    await made(BASE, PERSISTENT);
    const parents = new Set<string>();
    const context = new AsyncLocalStorage<string>();
    const id = randomUUID();
    let count = 0;
    const withLock = async (key: string, section: Section): Promise<void> => {
      const parent = `${BASE}/${key}`;
      if (!parents.has(parent)) await made(parent, CONTAINER);
      parents.add(parent);
      const owner = `${id}:${++count}`;
      const [created, children] = await Promise.all([
        session.request(create(`${parent}/_c_${owner}-lock-`, EPHEMERAL_SEQUENTIAL, acls)),
        session.request(getChildren(parent)),
      ]);
      if (children.length > 1) throw new Error(`"${key}" is taken, and the floor does not wait`);
      try {
        await context.run(owner, section);
      } finally {
        await session.request(remove(created.path));
      }
    };
    return {
      styles: { withLock },
      close: () => session.close({ keepsNodes: false }),
    };
  },
};
