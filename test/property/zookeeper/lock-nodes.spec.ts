import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import {
  MARKS,
  NodeQueue,
  nodeNameOf,
  parseNode,
  type NodeKind,
} from '../../../lib/stores/zookeeper/lock-nodes.js';
import { ancestorsOf, faultOfPath, LockPaths, segmentOf } from '../../../lib/stores/zookeeper/lock-path.js';
import { ZkWatches } from '../../../lib/stores/zookeeper/zk-watches.js';
import type { ZkConnection } from '../../../lib/stores/zookeeper/zk-connection.js';
import { runs } from '../../support/property/runs.js';

const kinds = fc.constantFrom(...(Object.keys(MARKS) as NodeKind[]));
const owners = fc.stringMatching(/^[\da-f-]{1,36}(?::\d{1,6})?$/);
const numberText = (number: number): string => String(number).padStart(10, '0');

describe('the name of a node', () => {
  it('has its owner, its kind and its number', () => {
    const property = fc.property(kinds, owners, fc.nat(2 ** 31 - 1), (kind, owner, number) => {
      const name = `${nodeNameOf(kind, owner)}${numberText(number)}`;
      expect(parseNode(name)).toEqual({ name, owner, kind, number });
    });
    fc.assert(property, runs(500));
  });

  it.each([
    ['_c_8b8b0f1c-7a5a-4c1e-9d0a-1f2e3d4c5b6a-lock-0000000007', 'exclusive', 7],
    ['_c_8b8b0f1c-7a5a-4c1e-9d0a-1f2e3d4c5b6a-__READ__0000000004', 'read', 4],
    ['_c_8b8b0f1c-7a5a-4c1e-9d0a-1f2e3d4c5b6a-__WRIT__0000000005', 'write', 5],
    ['lock-0000000012', 'exclusive', 12],
    ['_c_8b8b0f1c-7a5a-4c1e-9d0a-1f2e3d4c5b6a-lease-0000000003', 'permit', 3],
  ] as const)('of Curator is read: %s', (name, kind, number) => {
    expect(parseNode(name)).toMatchObject({ kind, number });
  });

  it.each(['leases', 'locks', '42', '_c_x-lease-', '_c_x-lock-', 'lock-12'])('is not %s', (name) => {
    expect(parseNode(name)).toBeUndefined();
    expect(new NodeQueue([name]).stranger).toBe(name);
  });
});

describe('the queue of a path', () => {
  /** What each kind promises, in the plainest words. */
  const isHolder = (nodes: readonly { kind: NodeKind }[], at: number): boolean =>
    nodes[at]!.kind === 'read' ? nodes.slice(0, at).every(({ kind }) => kind === 'read') : at === 0;

  it('is in the order of numbers, whatever the owners are called, and has one holder or readers only', () => {
    const property = fc.property(
      fc.uniqueArray(fc.tuple(owners, kinds, fc.nat(1_000)), {
        selector: ([, , number]) => number,
        maxLength: 12,
      }),
      fc.infiniteStream(fc.nat()),
      (nodes, order) => {
        const sorted = nodes.toSorted((a, b) => a[2] - b[2]);
        const children = nodes
          .map(([owner, kind, number]) => ({
            name: nodeNameOf(kind, owner) + numberText(number),
            at: order.next().value!,
          }))
          .sort((a, b) => a.at - b.at)
          .map(({ name }) => name);
        const queue = new NodeQueue(children);
        expect(queue.nodes.map(({ number }) => number)).toEqual(sorted.map(([, , number]) => number));
        const holders = queue.nodes.filter((_, at) => isHolder(queue.nodes, at));
        expect(queue.holders).toEqual(holders);
        expect(queue.waiting).toEqual(queue.nodes.filter((node) => !holders.includes(node)));
        expect(holders.length <= 1 || holders.every(({ kind }) => kind === 'read')).toBe(true);
      },
    );
    fc.assert(property, runs(500));
  });

  it('has a downgraded writer and its reader under one number: both hold, and no other writer does', () => {
    const queue = new NodeQueue([
      '_c_a-__READ__0000000004',
      '_c_b-__READ__0000000005',
      '_c_a-__WRIT__0000000004',
    ]);
    expect(queue.holders.map(({ name }) => name)).toEqual([
      '_c_a-__WRIT__0000000004',
      '_c_a-__READ__0000000004',
    ]);
    expect(queue.waiting.map(({ owner }) => owner)).toEqual(['b']);
    const next = new NodeQueue(['_c_c-__WRIT__0000000006', '_c_a-__READ__0000000004']);
    expect(next.holders.map(({ owner }) => owner)).toEqual(['a']);
  });
});

describe('the path of a key', () => {
  it('is one segment that a server accepts, and different for each key', () => {
    const keys = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.string({ unit: fc.constantFrom('/', '.', '%', '2', 'F', '\0', '\n', '🔒', '\ufff9'), minLength: 1 }),
    );
    const property = fc.property(keys, keys, (a, b) => {
      const paths = new LockPaths('/app', '/locks', undefined);
      expect(faultOfPath(paths.of(a))).toBeUndefined();
      expect(ancestorsOf(paths.of(a))).toEqual(['/app', '/app/locks']);
      if (a !== b) expect(paths.of(a)).not.toBe(paths.of(b));
    });
    fc.assert(property, runs(1_000));
  });

  it('stays readable where it can', () => {
    expect(segmentOf('lock:order 42.json')).toBe('lock:order 42.json');
    expect([segmentOf('a/b'), segmentOf('..'), segmentOf('50%'), segmentOf('\u0007')]).toEqual([
      'a%2Fb',
      '%2E%2E',
      '50%25',
      '%07',
    ]);
  });

  it('is that of the option, and its error keeps the cause', () => {
    const cause = new Error('no such order');
    const fails = (): string => {
      throw cause;
    };
    expect(new LockPaths('', '/locks', (key) => `/x/${key}`).of('a')).toBe('/x/a');
    for (const [path, message] of [
      [fails, /the option path failed for it/],
      [(() => 5) as never, /returned no text/],
    ] as const) {
      const paths = new LockPaths('', '/locks', path);
      expect(() => paths.check('a')).toThrow(message);
      expect(() => paths.check('a')).toThrow(LockKeyError);
      if (path === fails) expect(() => paths.check('a')).toThrow(expect.objectContaining({ cause }) as Error);
    }
  });
});

describe('watches', () => {
  /** Records what is set again on a new connection. */
  const recording = () => {
    const parts: (readonly [data: readonly string[], children: readonly string[]])[] = [];
    const times: number[] = [];
    const connection = {
      setWatches: (_: bigint, data: readonly string[], children: readonly string[], until: number) => {
        parts.push([data, children]);
        times.push(until);
        return Promise.resolve();
      },
    } as unknown as ZkConnection;
    return { parts, times, connection };
  };

  it('are told once, of their node, and not after they have ended', () => {
    const watches = new ZkWatches();
    const told: string[] = [];
    watches.add('data', '/a', (change) => told.push(`data ${change}`));
    watches.add('children', '/a', (change) => told.push(`children ${change}`));
    const end = watches.add('data', '/a', () => told.push('ended'));
    end();
    watches.changed({ type: 3, path: '/b' });
    watches.changed({ type: 3, path: '/a' });
    watches.changed({ type: 3, path: '/a' });
    watches.changed({ type: 2, path: '/a' });
    watches.changed({ type: 4, path: '/a' });
    expect(told).toEqual(['data changed', 'children deleted']);
  });

  it('are set again in parts that fit into a frame, each once and with a time of its own', async () => {
    const watches = new ZkWatches();
    const paths = Array.from({ length: 5_000 }, (_, i) => `/${String(i).padStart(120, 'x')}`);
    for (const path of paths) watches.add('data', path, () => undefined);
    watches.add('children', '/c', () => undefined);
    const { parts, times, connection } = recording();
    await watches.setAgain(connection, 1n, () => times.length);
    expect(times).toEqual(times.map((_, i) => i));
    expect(parts.length).toBeGreaterThan(3);
    expect(parts.flatMap(([data]) => data)).toEqual(paths);
    expect(parts.flatMap(([, children]) => children)).toEqual(['/c']);
    for (const [data] of parts) expect(Buffer.byteLength(data.join('xxxx'))).toBeLessThan(256 * 1_024);
    watches.clear();
    const empty = recording();
    await watches.setAgain(empty.connection, 1n, () => Infinity);
    expect(empty.parts).toEqual([]);
  });
});
