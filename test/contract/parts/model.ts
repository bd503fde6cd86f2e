import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FullStore } from '../harness.js';
import { holderOf, claimFor, newKey, newOwner, type ContractContext } from '../harness.js';

const ACTORS = 3;
const KEYS = 2;
// On a real clock no lease may end within a run, and what is left is known only roughly.
const LEASES_MS = [30_000, 60_000, 120_000];
const ROUGHLY_MS = 10_000;

type Operation =
  | { op: 'acquire'; actor: number; key: number; leaseMs: number; fenceBlock: number }
  | { op: 'extend'; actor: number; leaseMs: number }
  | { op: 'release'; actor: number; key: number; stale: boolean }
  | { op: 'inspect'; actor: number; key: number }
  | { op: 'forceUnlock'; actor: number; key: number }
  | { op: 'pass'; ms: number };

const actor = fc.nat(ACTORS - 1);
const key = fc.nat(KEYS - 1);
const leaseMs = fc.constantFrom(...LEASES_MS);

const operation = (virtualTime: boolean): fc.Arbitrary<Operation> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('acquire' as const),
        actor,
        key,
        leaseMs,
        fenceBlock: fc.nat(3),
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('extend' as const), actor, leaseMs }) },
    {
      weight: 3,
      arbitrary: fc.record({ op: fc.constant('release' as const), actor, key, stale: fc.boolean() }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('inspect' as const), actor, key }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('forceUnlock' as const), actor, key }) },
    {
      weight: virtualTime ? 3 : 0,
      arbitrary: fc.record({ op: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 70_000 }) }),
    },
  );

interface ModelKey {
  readonly name: string;
  hold: { owner: string; endsAt: number } | null;
  lastToken: number;
  /** The owner id each actor uses now, and the one it gave up. */
  readonly owners: string[];
  readonly stale: string[];
}

/** Runs the operations on the stores and on a model of a few lines, and compares every answer. */
class ModelRun {
  private now = 0;
  private readonly keys: ModelKey[] = Array.from({ length: KEYS }, () => ({
    name: newKey('model'),
    hold: null,
    lastToken: 0,
    owners: Array.from({ length: ACTORS }, newOwner),
    stale: Array.from({ length: ACTORS }, newOwner),
  }));

  constructor(
    private readonly context: ContractContext,
    private readonly stores: readonly FullStore[],
  ) {}

  async step(operation: Operation): Promise<void> {
    if (operation.op === 'pass') return this.pass(operation.ms);
    const store = this.stores[operation.actor]!;
    if (operation.op === 'extend') return this.extend(store, operation);
    const key = this.keys[operation.key]!;
    switch (operation.op) {
      case 'acquire':
        return this.acquire(store, key, operation);
      case 'release':
        return this.release(store, key, operation);
      case 'inspect':
        return this.inspect(store, key);
      case 'forceUnlock': {
        expect(await store.forceUnlock(key.name)).toBe(key.hold !== null);
        key.hold = null;
      }
    }
  }

  async finish(): Promise<void> {
    for (const key of this.keys) {
      await this.inspect(this.stores[0]!, key);
      await this.stores[0]!.forceUnlock(key.name);
    }
  }

  private async pass(ms: number): Promise<void> {
    await this.context.harness.pass(ms);
    this.now += ms;
    for (const key of this.keys) if (key.hold && key.hold.endsAt <= this.now) key.hold = null;
  }

  private async acquire(
    store: FullStore,
    key: ModelKey,
    asked: Operation & { op: 'acquire' },
  ): Promise<void> {
    const owner = key.owners[asked.actor]!;
    const { leaseMs, fenceBlock } = asked;
    const reply = await store.kinds.exclusive.acquire(
      claimFor(key.name, { owner, leaseMs, tokens: fenceBlock }),
    );
    if (key.hold && key.hold.owner !== owner) {
      expect(reply.status).toBe('taken');
      if (reply.status === 'taken') this.expectLeft(reply.retryInMs, key.hold.endsAt);
      return;
    }
    expect(reply.status).toBe('granted');
    if (reply.status !== 'granted') return;
    key.hold = { owner, endsAt: this.now + leaseMs };
    this.expectLeft(reply.validForMs, key.hold.endsAt);
    if (fenceBlock === 0) {
      expect(reply.token).toBeUndefined();
    } else {
      expect(Number.isSafeInteger(reply.token)).toBe(true);
      expect(reply.token).toBeGreaterThan(key.lastToken);
      key.lastToken = (reply.token as number) + fenceBlock - 1;
    }
  }

  /** Extends what the actor may have on all keys in one batch, and what it gave up before. */
  private async extend(store: FullStore, { actor, leaseMs }: Operation & { op: 'extend' }): Promise<void> {
    const asked = this.keys.flatMap((key) => [
      { key, owner: key.owners[actor]! },
      { key, owner: key.stale[actor]! },
    ]);
    const replies = await store.kinds.exclusive.extendMany(
      asked.map(({ key, owner }) => claimFor(key.name, { owner, leaseMs })),
    );
    expect(replies).toHaveLength(asked.length);
    replies.forEach((reply, index) => {
      const { key, owner } = asked[index]!;
      expect(reply.status).toBe(key.hold?.owner === owner ? 'held' : 'lost');
      if (reply.status !== 'held' || !key.hold) return;
      key.hold.endsAt = Math.max(key.hold.endsAt, this.now + leaseMs);
      this.expectLeft(reply.validForMs, key.hold.endsAt);
    });
  }

  private async release(
    store: FullStore,
    key: ModelKey,
    asked: Operation & { op: 'release' },
  ): Promise<void> {
    const owner = (asked.stale ? key.stale : key.owners)[asked.actor]!;
    const reply = await store.kinds.exclusive.release(claimFor(key.name, { owner }));
    const held = key.hold?.owner === owner;
    expect(reply.wasHeld).toBe(held);
    expect(reply.othersWaiting).toBe(false);
    if (held) key.hold = null;
    if (asked.stale) return;
    // An owner id is never used again after a release was sent for it.
    key.stale[asked.actor] = owner;
    key.owners[asked.actor] = newOwner();
  }

  private async inspect(store: FullStore, key: ModelKey): Promise<void> {
    const info = await holderOf(store, key.name);
    expect(info && { owner: info.owner, count: info.count }).toEqual(
      key.hold && { owner: key.hold.owner, count: 1 },
    );
    if (info && key.hold) this.expectLeft(info.remainingMs, key.hold.endsAt);
  }

  private expectLeft(ms: number, endsAt: number): void {
    const expected = endsAt - this.now;
    if (this.context.harness.virtualTime) expect(ms).toBe(expected);
    else expect(expected - ms).toSatisfy((less: number) => less >= 0 && less < ROUGHLY_MS);
  }
}

/** Random sequences of operations. */
export function describeModel(context: ContractContext): void {
  describe('random sequences', () => {
    it('of operations by three processes on two keys get the answers a simple model gives', async () => {
      const stores = await Promise.all(Array.from({ length: ACTORS }, () => context.connect()));
      const sequences = fc.array(operation(context.harness.virtualTime), { minLength: 1, maxLength: 40 });
      await fc.assert(
        fc.asyncProperty(sequences, async (operations) => {
          const run = new ModelRun(context, stores);
          for (const next of operations) await run.step(next);
          await run.finish();
        }),
        { numRuns: 200 },
      );
    });
  });
}
