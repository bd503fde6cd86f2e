import { describe, expect, it } from 'vitest';
import { JuteReader, JuteWriter } from '../../../lib/stores/zookeeper/jute.js';
import { NodeParents } from '../../../lib/stores/zookeeper/node-parents.js';
import { getChildren, type ZkRequest } from '../../../lib/stores/zookeeper/requests.js';
import { CODE, refusedWith } from '../../../lib/stores/zookeeper/zk-failure.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const LIST = getChildren('').op;
const UNTIL = 10_000;

/** The parents of a store whose option says where locks are, at a server that has these nodes. */
const underTest = (nodes: readonly string[], childrenOf: (path: string) => readonly string[] = () => []) => {
  const runtime = new VirtualRuntime();
  const there = new Set(nodes);
  const sent: string[] = [];
  const request = <T>({ op, write }: ZkRequest<T>): Promise<T> => {
    const to = new JuteWriter();
    write(to);
    const path = new JuteReader(to.frame().subarray(4)).text();
    sent.push(`${op === LIST ? 'list' : 'create'} ${path}`);
    if (op === LIST) return Promise.resolve(childrenOf(path) as T);
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (parent !== '' && !there.has(parent)) return Promise.reject(refusedWith(CODE.noNode));
    if (there.has(path)) return Promise.reject(refusedWith(CODE.nodeExists));
    there.add(path);
    return Promise.resolve({ path, created: 1n } as T);
  };
  const paths = { mayNest: true, basePath: '/nest' };
  const parents = new NodeParents(runtime, { request }, [], paths, { add: () => undefined });
  return { runtime, sent, parents };
};

describe('the nodes above a lock on ZooKeeper', () => {
  it('are looked at once a second, however many keys come once', async () => {
    const { runtime, sent, parents } = underTest(['/locks']);
    for (let key = 0; key < 100; key++) await parents.create(`/locks/${key}`, UNTIL);
    expect(sent.filter((what) => what.startsWith('list'))).toEqual(['list /locks']);
    await runtime.pass(1_100);
    await parents.create('/locks/again', UNTIL);
    expect(sent.slice(-2)).toEqual(['list /locks', 'create /locks/again']);
  });

  it('are created only where they are missing', async () => {
    const { sent, parents } = underTest(['/locks']);
    await parents.create('/locks/a', UNTIL);
    await parents.create('/locks/shop/b', UNTIL);
    expect(sent.filter((what) => what.startsWith('create'))).toEqual([
      'create /locks/a',
      'create /locks/shop/b',
      'create /locks',
      'create /locks/shop',
      'create /locks/shop/b',
    ]);
  });

  it('with a lock are refused each time', async () => {
    const { sent, parents } = underTest(['/locks'], () => ['_c_me-lock-0000000001']);
    for (let i = 0; i < 2; i++)
      await expect(parents.create('/locks/a', UNTIL)).rejects.toThrow('inside the lock of another key');
    expect(sent).toEqual(['list /locks', 'list /locks']);
  });

  it('of permits are looked at each time, since a lock may have come', async () => {
    const { sent, parents } = underTest(['/locks', '/locks/a']);
    for (let i = 0; i < 2; i++) await parents.create('/locks/a/leases', UNTIL, true);
    expect(sent.filter((what) => what === 'list /locks/a')).toHaveLength(2);
  });
});
