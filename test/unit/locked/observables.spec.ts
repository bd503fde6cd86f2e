import 'reflect-metadata';
import { setImmediate } from 'node:timers/promises';
import {
  concat,
  EMPTY,
  firstValueFrom,
  from,
  interval,
  lastValueFrom,
  mergeMap,
  NEVER,
  Observable,
  of,
  Subject,
  take,
  throwError,
  toArray,
} from 'rxjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { Limited, LockConfigurationError, Locked, currentLease, type LockService } from 'nest-redis-lock';
import { collectUnhandledRejections, until } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

const broken = new Error('broken half-way');

/** What two callers of one key did, in order. */
const tracked = (log: string[], name: string): Observable<number> =>
  new Observable((subscriber) => {
    log.push(`${name} begins`);
    return concat(interval(2).pipe(take(3))).subscribe({
      next: (value) => subscriber.next(value),
      complete: () => {
        log.push(`${name} ends`);
        subscriber.complete();
      },
    });
  });

class Feeds {
  readonly log: string[] = [];
  readonly subject = new Subject<number>();
  calls = 0;

  @Locked('feed')
  count(name: string): Observable<number> {
    return tracked(this.log, name);
  }

  @Locked('feed')
  async countLater(name: string): Promise<Observable<number>> {
    return tracked(this.log, name);
  }

  @Locked('feed')
  live(): Observable<number> {
    this.calls++;
    return this.subject;
  }

  @Locked('feed')
  async liveLater(): Promise<Observable<number>> {
    return this.subject;
  }

  @Locked('feed')
  fails(): Observable<number> {
    return concat(
      of(1),
      throwError(() => broken),
    );
  }

  @Locked('feed')
  async failsLater(): Promise<Observable<number>> {
    return concat(
      of(1),
      throwError(() => broken),
    );
  }

  @Locked('feed')
  throwsAtOnce(): Observable<number> {
    throw broken;
  }

  @Locked('feed')
  keys(): Observable<readonly string[]> {
    return new Observable((subscriber) => {
      subscriber.next(currentLease().keys);
      subscriber.complete();
    });
  }

  @Locked('feed')
  async keysLater(): Promise<Observable<readonly string[]>> {
    return new Observable((subscriber) => {
      subscriber.next(currentLease().keys);
      subscriber.complete();
    });
  }

  @Locked('feed')
  nested(locks: LockService): Observable<string> {
    return new Observable((subscriber) => {
      const inside = currentLease();
      void locks.withLock('feed', { inside }, () => subscriber.next('in')).then(() => subscriber.complete());
    });
  }
}

const idle = (locks: LockService) => until(() => isIdle(locks), { what: 'nothing is held' });

describe('a method that returns an Observable', () => {
  it('acquires no lock before the first subscription', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    instance.live();
    expect(isIdle(locks)).toBe(true);
    expect(instance.calls).toBe(0);
  });

  it('holds the lock from the subscription to the end, and is done with it by then', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    const seen = firstValueFrom(instance.live().pipe(toArray()));
    await until(() => instance.subject.observed);
    instance.subject.next(1);
    expect(await locks.isLocked('feed')).toBe(true);
    instance.subject.complete();
    await expect(seen).resolves.toEqual([1]);
    expect(isIdle(locks)).toBe(true);
  });

  it('lets two subscribers in one after the other', async () => {
    const { instance } = lockedInstance(Feeds, 10_000);
    const [one, two] = [instance.count('one'), instance.count('two')].map((feed) =>
      lastValueFrom(feed.pipe(toArray())),
    );
    await expect(one).resolves.toEqual([0, 1, 2]);
    await expect(two).resolves.toEqual([0, 1, 2]);
    expect(instance.log).toEqual(['one begins', 'one ends', 'two begins', 'two ends']);
  });

  it('locks each subscription separately', async () => {
    const { instance } = lockedInstance(Feeds);
    const feed = instance.count('again');
    await lastValueFrom(feed);
    await lastValueFrom(feed);
    expect(instance.log).toEqual(['again begins', 'again ends', 'again begins', 'again ends']);
  });

  it('gives the lock back when it is unsubscribed from early', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    const subscription = instance.live().subscribe();
    await until(() => instance.subject.observed);
    subscription.unsubscribe();
    await idle(locks);
    expect(instance.subject.observed).toBe(false);
  });

  it('stops waiting when it is unsubscribed from before the lock is there', async () => {
    const { instance, locks } = lockedInstance(Feeds, 60_000);
    const lease = await locks.acquire('feed');
    const errors: unknown[] = [];
    const subscription = instance.live().subscribe({ error: (error) => errors.push(error) });
    await until(() => locks.usage.leases === 2);
    subscription.unsubscribe();
    await until(() => locks.usage.leases === 1);
    await lease.release();
    expect(isIdle(locks)).toBe(true);
    expect([instance.calls, errors]).toEqual([0, []]);
  });

  it('delivers its own error, and gives the lock back', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    await expect(lastValueFrom(instance.fails())).rejects.toBe(broken);
    await expect(lastValueFrom(instance.throwsAtOnce())).rejects.toBe(broken);
    expect(isIdle(locks)).toBe(true);
  });

  it('delivers a taken lock as an error of the stream', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    await using _lease = await locks.acquire('feed');
    await expect(lastValueFrom(instance.live())).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(instance.calls).toBe(0);
  });

  it('runs inside its section: currentLease() works, and takes nested calls', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    await expect(firstValueFrom(instance.keys())).resolves.toEqual(['feed']);
    await expect(lastValueFrom(instance.nested(locks))).resolves.toBe('in');
  });

  it('never runs without a lock service', async () => {
    await expect(lastValueFrom(new Feeds().live())).rejects.toThrow(LockConfigurationError);
  });

  it('holds the lock also where the return type was erased; callers then get a promise of it', async () => {
    class Erased {
      readonly subject = new Subject<number>();

      // As `import type { Observable }` leaves it in the metadata.
      @Locked('feed')
      live(): typeof this.subject {
        return this.subject;
      }
    }
    const { instance, locks } = lockedInstance(Erased);
    const feed = await (instance.live() as unknown as Promise<Observable<number>>);
    const seen = lastValueFrom(feed);
    expect(await locks.isLocked('feed')).toBe(true);
    instance.subject.next(1);
    instance.subject.complete();
    await expect(seen).resolves.toBe(1);
    await idle(locks);
  });
});

async function* numbers(): AsyncGenerator<number> {
  yield* [1, 2];
}

/** As a compiler leaves it that emits no types: esbuild, tsx, Babel. */
class Undeclared {
  readonly subject = new Subject<number>();
  readonly Observable = Observable;
  calls = 0;
  begun = 0;

  @Locked('feed')
  live() {
    this.calls++;
    return new this.Observable<number>((reader) => {
      this.begun++;
      return this.subject.subscribe(reader);
    });
  }

  @Locked('feed', { onBusy: 'skip' })
  skips() {
    return EMPTY;
  }

  @Locked('feed', { onBusy: () => of(7) })
  fallsBack() {
    return of(1);
  }

  @Locked('feed')
  generated() {
    return numbers();
  }

  @Locked('feed')
  list() {
    return Promise.resolve([1, 2]);
  }

  @Locked('outer')
  @Locked('inner')
  twice() {
    return Promise.resolve(++this.calls);
  }

  readonly jobs: (() => void)[] = [];
  @Locked('feed')
  job() {
    return new Promise<string>((done) => this.jobs.push(() => done('done')));
  }

  @Limited('feed', { permits: 1 })
  limited() {
    return of(1);
  }
}

/** A result, for a caller that looks at its methods. */
const asFeed = (result: unknown) => result as Observable<unknown>;

describe('a method that is not declared to return an Observable, and returns one', () => {
  beforeAll(() => {
    const methods = Object.getOwnPropertyNames(Undeclared.prototype);
    const declared = methods.map((name) =>
      Reflect.getMetadata('design:returntype', Undeclared.prototype, name),
    );
    expect(declared.filter(Boolean)).toEqual([]);
  });

  it.each<[string, (feed: Observable<number>) => Promise<unknown>]>([
    ['subscribed to', (feed) => new Promise((seen) => feed.subscribe(seen))],
    ['piped', (feed) => firstValueFrom(feed.pipe(toArray())).then(([first]) => first)],
    ['read by forEach', (feed) => new Promise((seen) => void feed.forEach(seen))],
    ['flattened', (feed) => lastValueFrom(of(0).pipe(mergeMap(() => feed)))],
    ['awaited', async (feed) => firstValueFrom(await (feed as never as Promise<typeof feed>))],
  ])('can be %s, and holds the lock until the end', async (_how, read) => {
    const { instance, locks } = lockedInstance(Undeclared);
    const seen = read(instance.live());
    await until(() => instance.subject.observed);
    expect(await locks.isLocked('feed')).toBe(true);
    instance.subject.next(1);
    instance.subject.complete();
    await expect(seen).resolves.toBe(1);
    await idle(locks);
  });

  it('holds a permit as long', async () => {
    const { instance, locks } = lockedInstance(Undeclared);
    await expect(lastValueFrom(instance.limited())).resolves.toBe(1);
    await idle(locks);
  });

  it('locks each subscription of a caller that subscribes at once', async () => {
    const { instance, locks } = lockedInstance(Undeclared);
    const feed = instance.limited().pipe(toArray());
    await setImmediate();
    expect(isIdle(locks)).toBe(true);
    for (const _time of [1, 2]) await expect(lastValueFrom(feed)).resolves.toEqual([1]);
    await idle(locks);
  });

  it('gives the lock back at once when nothing reads it, and refuses a later reader', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = lockedInstance(Undeclared);
    const feed = instance.live();
    await until(() => instance.calls === 1);
    await idle(locks);
    expect(await unhandled.finish()).toEqual([]);
    await expect(lastValueFrom(feed)).rejects.toThrow(
      /Undeclared\.live: .*design:returntype.* below @Locked/,
    );
    expect(instance.begun).toBe(0);
  });

  it('does not begin, and gives the lock back, when a flattening leaves before the lock is there', async () => {
    const { instance, locks } = lockedInstance(Undeclared, 10_000);
    const lease = await locks.acquire('feed');
    const left = from(instance.live()).subscribe();
    await until(() => locks.usage.leases === 2);
    left.unsubscribe();
    await lease.release();
    await idle(locks);
    expect(instance.begun).toBe(0);
  });

  it('is not mistaken for a promise of two decorators that is awaited later', async () => {
    const { instance, locks } = lockedInstance(Undeclared);
    const later = instance.twice();
    await until(() => instance.calls === 1);
    await idle(locks);
    await expect(later).resolves.toBe(1);
  });

  it('holds the lock until its promise has settled, also when its subscriber has left', async () => {
    const { instance, locks } = lockedInstance(Undeclared, 10_000);
    const values: unknown[] = [];
    const reader = (): void => void asFeed(instance.job()).subscribe((value) => values.push(value));
    for (const _caller of [1, 2, 3]) reader();
    const left = asFeed(instance.job()).subscribe();
    await until(() => instance.jobs.length === 1);
    for (let done = 1; done <= 3; done++) {
      await until(() => instance.jobs.length === 1);
      await setImmediate();
      expect(instance.jobs).toHaveLength(1);
      instance.jobs.shift()!();
      await until(() => values.length === done);
    }
    await until(() => instance.jobs.length === 1);
    left.unsubscribe();
    await setImmediate();
    expect(isIdle(locks)).toBe(false);
    instance.jobs.shift()!();
    await idle(locks);
    expect(values).toEqual(['done', 'done', 'done']);
  });

  it('gives no stream of another kind to a subscriber', async () => {
    const { instance, locks } = lockedInstance(Undeclared);
    await expect(lastValueFrom(asFeed(instance.generated()).pipe(toArray()))).rejects.toThrow(
      /Undeclared\.generated returned .*for await/,
    );
    await idle(locks);
  });

  it('has no value for a caller that subscribes and awaits', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = lockedInstance(Undeclared);
    const feed = instance.limited();
    await expect(lastValueFrom(feed)).resolves.toBe(1);
    await expect(feed as never as Promise<unknown>).rejects.toThrow(/Undeclared\.limited: .*call it again/i);
    instance.limited().pipe(toArray());
    await idle(locks);
    expect(await unhandled.finish()).toEqual([]);
  });

  it('delivers a taken lock to its subscriber, and nowhere else', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = lockedInstance(Undeclared);
    await using _lease = await locks.acquire('feed');
    await expect(lastValueFrom(instance.live())).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(await unhandled.finish()).toEqual([]);
  });

  it('gives no value when it is skipped, and the values of its fallback', async () => {
    const { instance, locks } = lockedInstance(Undeclared);
    await using _lease = await locks.acquire('feed');
    await expect(lastValueFrom(instance.skips(), { defaultValue: 'none' })).resolves.toBe('none');
    await expect(lastValueFrom(from(instance.fallsBack()))).resolves.toBe(7);
  });

  it('is flattened like the iterable or the promise that it is', async () => {
    const { instance, locks } = lockedInstance(Undeclared);
    await expect(lastValueFrom(from(instance.generated()).pipe(toArray()))).resolves.toEqual([1, 2]);
    await idle(locks);
    await expect(lastValueFrom(from(instance.list()).pipe(toArray()))).resolves.toEqual([[1, 2]]);
    await idle(locks);
  });
});

it('a method acquires no lock before a subscription also when a bundle has renamed the class Observable', () => {
  class Renamed extends Observable<number> {}
  class Feed {
    @Locked('feed')
    live(): Renamed {
      return EMPTY;
    }
  }
  const { instance, locks } = lockedInstance(Feed);
  instance.live();
  expect(isIdle(locks)).toBe(true);
});

describe('a method that returns a promise of an Observable', () => {
  it('holds the lock until the end', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    const feed = await instance.liveLater();
    expect(await locks.isLocked('feed')).toBe(true);
    const seen = firstValueFrom(feed.pipe(toArray()));
    instance.subject.next(1);
    expect(await locks.isLocked('feed')).toBe(true);
    instance.subject.complete();
    await expect(seen).resolves.toEqual([1]);
    await idle(locks);
  });

  it('lets the next caller in only after that', async () => {
    const { instance } = lockedInstance(Feeds, 10_000);
    await Promise.all(['one', 'two'].map(async (name) => lastValueFrom(await instance.countLater(name))));
    expect(instance.log).toEqual(['one begins', 'one ends', 'two begins', 'two ends']);
  });

  it('gives the lock back when it is unsubscribed from early, and when it fails', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    (await instance.liveLater()).subscribe().unsubscribe();
    await idle(locks);
    await expect(lastValueFrom(await instance.failsLater())).rejects.toBe(broken);
    await idle(locks);
  });

  it('refuses to be read again after its end, when its lock is gone', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    const feed = await instance.countLater('once');
    await lastValueFrom(feed);
    await idle(locks);
    await expect(lastValueFrom(feed)).rejects.toThrow(/Feeds\.countLater: .*read again after its end/);
    expect(instance.log).toEqual(['once begins', 'once ends']);
  });

  it('holds the lock until the last of several subscribers has left', async () => {
    const { instance, locks } = lockedInstance(Feeds);
    const feed = await instance.liveLater();
    const [one, two] = [feed.subscribe(), feed.subscribe()];
    one.unsubscribe();
    expect(await locks.isLocked('feed')).toBe(true);
    two.unsubscribe();
    await idle(locks);
  });

  it('runs inside its section', async () => {
    const { instance } = lockedInstance(Feeds);
    await expect(firstValueFrom(await instance.keysLater())).resolves.toEqual(['feed']);
  });

  it('may be endless', async () => {
    class Endless {
      @Locked('feed')
      async forever(): Promise<Observable<never>> {
        return NEVER;
      }
    }
    const { instance, locks } = lockedInstance(Endless);
    const subscription = (await instance.forever()).subscribe();
    expect(await locks.isLocked('feed')).toBe(true);
    subscription.unsubscribe();
    await idle(locks);
  });
});

it('of another library whose subscribe throws gives its lock back, and the error to its reader', async () => {
  class Foreign {
    @Locked('feed')
    async feed(): Promise<Observable<number>> {
      const subscribe = (): never => {
        throw broken;
      };
      return { subscribe, pipe: () => undefined } as unknown as Observable<number>;
    }
  }
  const { instance, locks } = lockedInstance(Foreign);
  await expect(lastValueFrom(await instance.feed())).rejects.toBe(broken);
  await until(() => isIdle(locks));
});

it('that emits all values at once is told when no more are wanted', async () => {
  let made = 0;
  const endless = function* () {
    for (;;) yield made++;
  };
  class Numbers {
    @Locked('feed')
    all(): Observable<number> {
      return from(endless());
    }
  }
  const { instance, locks } = lockedInstance(Numbers);
  expect(await lastValueFrom(instance.all().pipe(take(3), toArray()))).toEqual([0, 1, 2]);
  expect(made).toBeLessThan(5);
  await until(() => isIdle(locks));
});
