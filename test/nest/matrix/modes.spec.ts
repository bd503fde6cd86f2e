import { Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import {
  currentLease,
  Locked,
  LOCKED_METADATA,
  LockConfigurationError,
  LockKeyError,
  LockService,
  type LockedMetadata,
} from 'nest-redis-lock';
import { deferred, until } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@Injectable()
class Stock {
  inside = 0;
  max = 0;

  constructor(private readonly locks: LockService) {}

  @Locked('stock', { mode: 'read', waitMs: 5_000 })
  async report(until: Promise<unknown>): Promise<string> {
    return this.work(until);
  }

  @Locked('stock', { mode: 'write', waitMs: 5_000 })
  async rebuild(until: Promise<unknown>): Promise<string> {
    return this.work(until);
  }

  @Locked('stock', { mode: 'read', onBusy: 'skip' })
  async skip(): Promise<string | undefined> {
    return 'ran';
  }

  @Locked('stock', { mode: 'read', waitMs: Infinity })
  async readThenWrite(): Promise<string> {
    const inside = currentLease();
    return this.locks.withLock('stock', { mode: 'write', waitMs: Infinity, inside }, () => 'wrote');
  }

  @Locked([{ key: 'sku:<<sku>>', mode: 'write' }, { key: 'stock', mode: 'read' }, 'log'])
  async book(sku: string): Promise<Record<string, string>> {
    const kinds = this.locks.held().map(({ key, kind }) => [key, kind] as const);
    expect(currentLease().keys).toEqual(['log', `sku:${sku}`, 'stock']);
    return Object.fromEntries(kinds);
  }

  @Locked((from: string, to: string) => [
    { key: from, mode: 'read' },
    { key: to, mode: 'write' },
  ])
  async copy(from: string, to: string): Promise<unknown> {
    expect([from, to].every((key) => currentLease().keys.includes(key))).toBe(true);
    return this.locks.held().map(({ key, kind }) => `${key} ${kind}`);
  }

  private async work(until: Promise<unknown>): Promise<string> {
    this.max = Math.max(this.max, (this.inside += 1));
    const { kind } = (await this.locks.inspect('stock'))!;
    await until;
    this.inside -= 1;
    return kind;
  }
}

const open = async (): Promise<Stock> => {
  const app = await apps.context(rootModule(world.options(), { providers: [Stock] }));
  return app.get(Stock);
};

describe('@Locked with a mode', () => {
  it('runs readers of several apps together, and a writer alone', async () => {
    const [one, two] = [await open(), await open()];
    const end = deferred();
    const reading = [one, one, two].map((stock) => stock.report(end.promise));
    await until(() => one.inside === 2 && two.inside === 1);
    const writing = two.rebuild(Promise.resolve());
    end.resolve();
    expect(await Promise.all(reading)).toEqual(['read', 'read', 'read']);
    expect(await writing).toBe('write');
    expect(two.max).toBe(1);
  });

  it('is refused while a writer is inside, and skips if it was told so', async () => {
    const [one, two] = [await open(), await open()];
    const end = deferred();
    const writing = one.rebuild(end.promise);
    await until(() => one.inside === 1);
    expect(await two.skip()).toBeUndefined();
    end.resolve();
    await writing;
    expect(await two.skip()).toBe('ran');
  });

  it('refuses a reader that wants to write at once, and says why', async () => {
    const stock = await open();
    const attempt = stock.readThenWrite();
    await expect(attempt).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT', key: 'stock' });
    await expect(attempt).rejects.toThrow(/two readers that both want to write would wait for each other/);
  });

  it('takes each of several keys in its own mode, by template and by function', async () => {
    const stock = await open();
    expect(await stock.book('7')).toEqual({ 'sku:7': 'write', stock: 'read', log: 'exclusive' });
    expect(await stock.copy('a', 'b')).toEqual(['a read', 'b write']);
    expect(await stock.copy('a', 'a')).toEqual(['a write']);
    expect(await world.holds()).toEqual([]);
  });

  it('is in the metadata as it was given, and frozen', () => {
    const metadata = new Reflector().get<LockedMetadata>(LOCKED_METADATA, Stock.prototype.book);
    expect(metadata.key).toEqual([
      { key: 'sku:<<sku>>', mode: 'write' },
      { key: 'stock', mode: 'read' },
      'log',
    ]);
    for (const key of metadata.key as readonly unknown[]) expect(Object.isFrozen(key)).toBe(true);
  });

  it('that does not exist, or of a key without a name, is an error when the class is loaded', () => {
    const declare =
      (key: never, options: object = {}) =>
      () => {
        class Wrong {
          @Locked(key, options)
          async run(): Promise<void> {}
        }
        return Wrong;
      };
    const refused = (...args: Parameters<typeof declare>) => {
      let error: unknown;
      try {
        declare(...args)();
      } catch (thrown) {
        error = thrown;
      }
      return error;
    };
    expect(refused('a' as never, { mode: 'append' })).toBeInstanceOf(LockConfigurationError);
    for (const wrong of [
      { key: 'a', mode: 'append' },
      { key: 'a', mode: 'fair' },
      { key: '', mode: 'read' },
      { key: 'a:<<nobody>>', mode: 'read' },
      { mode: 'read' },
    ]) {
      const error = refused(['b', wrong] as never);
      expect(error).toBeInstanceOf(LockKeyError);
      expect((error as Error).message).toContain('Wrong.run');
    }
  });
});
