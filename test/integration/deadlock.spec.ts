import { describe, expect, it } from 'vitest';
import { LockNotAcquiredError } from 'nest-redis-lock';
import { until, within } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('several keys at once', () => {
  it('callers that wait for the same keys in opposite orders, without a limit, never deadlock', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const [a, b, c] = [newKey('a'), newKey('b'), newKey('c')];
    let inside = 0;
    let served = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await lab.admin.ping();
      inside -= 1;
      served += 1;
    };
    const rounds = Array.from({ length: 30 }, (_, i) =>
      [one, two][i % 2]!.locks.withLock(
        [
          [a, b, c],
          [c, b, a],
          [b, c, a],
        ][i % 3]!,
        { waitMs: Infinity },
        work,
      ),
    );
    await within(15_000, Promise.all(rounds), 'all of them');
    expect(served).toBe(30);
  });
});

describe('one key inside of another', () => {
  it.each([
    ['alone', (a: string) => [a]],
    ['beside the one that is held', (a: string, b: string) => [a, b]],
  ])(
    'waiting in an order that can deadlock is said once, also where it has no end (%s)',
    async (_how, wanted) => {
      const { locks, log } = lab.open();
      const [a, b] = [newKey('a'), newKey('b')];
      await locks.withLock(b, async (inside) => {
        for (const waitMs of [Infinity, 2_000])
          await locks.withLock(wanted(a, b), { waitMs, inside }, () => undefined);
      });
      expect(log).toEqual([expect.stringContaining(`"${a}" is taken while "${b}" is held`)]);
      // Both at once is the way.
      expect(await locks.withLock([b, a], { waitMs: Infinity }, () => 'ran')).toBe('ran');
    },
  );

  it('two who really do deadlock each other come out of it when their wait is over, and nothing is left', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const [a, b] = [newKey('a'), newKey('b')];
    const both = await Promise.allSettled([
      one.locks.withLock(a, async () => {
        await until(() => lab.hold(b));
        return one.locks.withLock(b, { waitMs: 300 }, () => 'one');
      }),
      two.locks.withLock(b, async () => {
        await until(() => lab.hold(a));
        return two.locks.withLock(a, { waitMs: 20_000 }, () => 'two');
      }),
    ]);
    expect(both[0]).toMatchObject({ status: 'rejected' });
    expect((both[0] as PromiseRejectedResult).reason).toBeInstanceOf(LockNotAcquiredError);
    expect(both[1]).toMatchObject({ status: 'fulfilled', value: 'two' });
    await lab.nothingLeft(one, two);
  });
});
