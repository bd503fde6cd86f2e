import { createHash } from 'node:crypto';
import { LockConfigurationError } from 'nest-redis-lock';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ZooKeeperLab } from '../../support/zookeeper/zookeeper-lab.js';

/** An ACL for one identity, as a server stores it. */
const aclFor = (identity: string) => {
  const [user] = identity.split(':');
  const digest = createHash('sha1').update(identity).digest('base64');
  return [{ rights: 31, scheme: 'digest', id: `${user}:${digest}` }];
};

let lab: ZooKeeperLab;
beforeAll(async () => {
  lab = await ZooKeeperLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

describe('the list of holds in ZooKeeper', () => {
  it('has no nodes of other clients, also of those that it may not read', async () => {
    const { locks } = lab.open({ keyPrefix: '' }, { basePath: '/mixed' });
    expect(await locks.list()).toEqual({ locks: [], cursor: undefined });
    const lease = await locks.acquire('order/1');
    await lab.createNode('/mixed/config');
    await lab.createNode('/mixed/config/leader');
    await lab.createNode('/mixed/50%');
    await lab.createNode('/mixed/%61');
    await lab.createNode('/mixed/secret', aclFor('other:secret'));
    expect((await locks.list()).locks).toMatchObject([{ key: 'order/1', holders: [{ owner: lease.owner }] }]);
  });

  it('has the locks in the root, beside the nodes of the server', async () => {
    const { locks } = lab.open({ keyPrefix: 'of-root:' }, { basePath: '/' });
    await locks.permits('crm', { permits: 1 }).acquire();
    expect((await locks.list()).locks).toMatchObject([{ key: 'crm', kind: 'permit' }]);
  });

  it('is refused with the option path, by its name', async () => {
    const { locks } = lab.open({}, { path: (key) => `/java/${key}` });
    await expect(locks.list()).rejects.toThrow('ZooKeeper cannot list its locks with the option path');
    await expect(locks.list()).rejects.toBeInstanceOf(LockConfigurationError);
  });
});
