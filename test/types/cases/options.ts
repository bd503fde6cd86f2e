// Options of the decorator and of single acquisitions.
import {
  Locked,
  type AcquireOptions,
  type LockedOptions,
  type LockService,
  type SectionOptions,
} from 'nest-redis-lock';

declare const locks: LockService;

export class Accepted {
  @Locked('key', {
    waitMs: Infinity,
    leaseMs: 5,
    holdAtLeastMs: 5,
    onLost: 'throw',
    awaitRelease: false,
    service: 'billing',
    signal: AbortSignal.timeout(5),
  })
  async all(): Promise<void> {}

  @Locked('key', { onBusy: (error) => error.key })
  async fallback(): Promise<string | undefined> {
    return '';
  }

  @Locked('order:<<id>>', {
    onBusy(this: Accepted, error, id: string) {
      return this.other(error.key ?? id);
    },
  })
  async withThis(id: string): Promise<string> {
    return id;
  }

  readonly config = { waitMs: 5 };

  @Locked('order', { onLost: 'throw' }, (self: Accepted) => self.config)
  async varying(): Promise<void> {}

  @Locked('order:<<id>>', {}, (_self, id: string) => (id === '' ? undefined : { leaseMs: 5 }))
  async varyingByArgument(id: string): Promise<string> {
    return id;
  }

  private other(id: string): string {
    return id;
  }
}

export class Refused {
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  @Locked('key', { waitMs: '5s' })
  async text(): Promise<void> {}

  // @ts-expect-error 'wait' does not exist in type
  @Locked('key', { wait: 5 })
  async misspelt(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @Locked('key', { onBusy: 'ignore' })
  async ignore(): Promise<void> {}

  // @ts-expect-error is not assignable to
  @Locked('order:<<id>>', {}, (_self, id: number) => ({ leaseMs: id }))
  async varyingByAnother(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error No overload matches this call
  @Locked('key', {}, () => ({ mode: 'fair' }))
  async varyingMode(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked(7)
  async number(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked(['a', 7])
  async mixed(): Promise<void> {}
}

export const acquisitions = async (): Promise<unknown> => {
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  await locks.acquire('key', { waitMs: '5s' });
  // @ts-expect-error Type 'string' is not assignable to type 'undefined'
  await locks.acquire('key', { onLost: 'throw' });
  // @ts-expect-error Type 'false' is not assignable to type 'undefined'
  await locks.acquire('key', { awaitRelease: false });
  // @ts-expect-error Type 'string' is not assignable to type 'undefined'
  await locks.withLock('key', { onBusy: 'skip' }, () => 1);
  // @ts-expect-error 'wait' does not exist in type
  await locks.acquire('key', { wait: 5 });
  // @ts-expect-error has no properties in common with type
  await locks.withLock('key', () => 1, { waitMs: 3 });
  // @ts-expect-error Expected 2-3 arguments, but got 1
  await locks.withLock('key');
  await locks.withLock('key', { holdAtLeastMs: 5, onLost: 'throw', awaitRelease: false }, () => 1);
  await locks.tryWithLock('key', { awaitRelease: false }, () => 1);
  await locks.withLock(['a', 'b'], ({ fencingToken }) => fencingToken);
  return locks.tryAcquire('key', { waitMs: 5 });
};

/** Options in a variable, which the compiler does not check for what is too much. */
export const inVariables = async (
  job: SectionOptions,
  locked: LockedOptions,
  plain: AcquireOptions,
): Promise<void> => {
  // @ts-expect-error Types of property 'onLost' are incompatible
  await locks.tryAcquire('job', job);
  // @ts-expect-error Types of property 'onLost' are incompatible
  await locks.acquire('job', job);
  // @ts-expect-error Argument of type 'LockedOptions' is not assignable
  await locks.withLock('job', locked, () => 1);
  await locks.withLock('job', job, () => 1);
  await locks.withLock('job', plain, () => 1);
  await locks.acquire('job', plain);
};
