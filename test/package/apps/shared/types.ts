// Compiled and never run: the types of the package arrive, and are not `any`.
import { Locked, type LockService } from 'nest-redis-lock';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';

export class Mistakes {
  // @ts-expect-error a method that is over at once cannot be locked
  @Locked('mistake')
  now(): string {
    return 'done';
  }

  // @ts-expect-error the key is made of something the method does not have
  @Locked((id: number) => `mistake:${id}`)
  async other(name: string): Promise<string> {
    return name;
  }

  async byHand(locks: LockService): Promise<number> {
    // @ts-expect-error a key is text
    await locks.withLock(42, async () => undefined);
    // @ts-expect-error there is no such option
    await locks.tryAcquire('mistake', { patience: 5 });
    return locks.withLock('right', async (lease) => lease.fencingToken);
  }
}

export const bound: Mistakes = bindLocks(new Mistakes(), createTestingLocks('memory', { waitMs: 100 }));

// @ts-expect-error there is no such mode
createTestingLocks('sometimes');
