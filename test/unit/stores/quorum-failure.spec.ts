import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { QuorumFailure } from '../../../lib/stores/redis/quorum/quorum-call.js';
import { QuorumNode } from '../../../lib/stores/redis/quorum/quorum-node.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const down = new StoreFailure('connection refused', 'not-executed', { passing: true });
const busy = new StoreFailure('too many requests wait', 'not-executed', { overloaded: true });
const wrong = new StoreFailure('wrong password', 'not-executed');

const nodes = ['a', 'b', 'c'].map(
  (name) =>
    new QuorumNode(name, new MemoryStore(), {
      runtime: new VirtualRuntime(),
      delayAfterStartMs: () => 0,
      sameAs: () => undefined,
      clockOff: () => undefined,
      tokenAhead: () => undefined,
      lookAgain: () => Promise.resolve(undefined),
      hasEnoughWithoutFailing: () => false,
      warn: () => undefined,
    }),
);

describe('a quorum without a majority', () => {
  it.each([
    { failures: [down, down], passing: true },
    { failures: [down, down, down], passing: true },
    { failures: [down, wrong], passing: true },
    { failures: [down, wrong, wrong], passing: false },
    { failures: [wrong, wrong], passing: false },
  ])('may have one again if a majority of nodes may work again: %j', ({ failures, passing }) => {
    const byNode = new Map(failures.map((failure, i) => [nodes[i]!, failure]));
    expect(new QuorumFailure(byNode, { nodes, majority: 2 }, 'unknown').passing).toBe(passing);
  });
});

describe('a quorum in which nodes were not asked, because this process asks for too much', () => {
  it.each([
    { failures: [busy], overloaded: true },
    { failures: [busy, down], overloaded: true },
    { failures: [down], overloaded: false },
    { failures: [busy, down, down], overloaded: false },
  ])('is overloaded, unless it lacks a majority without that: %j', ({ failures, overloaded }) => {
    const byNode = new Map(failures.map((failure, i) => [nodes[i]!, failure]));
    expect(new QuorumFailure(byNode, { nodes, majority: 2 }, 'unknown').overloaded).toBe(overloaded);
  });
});

it('the failure of a quorum shows the names of its nodes, and nothing else of them', () => {
  const node = { name: 'redis-1:6379', client: { password: 's3cr3t' } } as unknown as QuorumNode;
  const byNode = new Map([[node, new StoreFailure('no reply', 'unknown')]]);
  const failure = new QuorumFailure(byNode, { nodes: [node], majority: 1 }, 'unknown');
  expect(failure.byNode).toBe(byNode);
  const text = inspect(failure, { depth: 20, showHidden: true });
  expect(text).toContain('redis-1:6379: no reply');
  expect(text).not.toContain('s3cr3t');
});
