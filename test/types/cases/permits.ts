// @Limited, and the methods of the service that take permits.
import { expectTypeOf } from 'vitest';
import type { Observable } from 'rxjs';
import {
  Limited,
  Locked,
  type Lease,
  type LimitedMetadata,
  type LimitedOptions,
  type LockedOptions,
  type LockKind,
  type LockService,
  type PermitOptions,
  type PermitSectionOptions,
} from 'nest-redis-lock';

declare const locks: LockService;

export class Accepted {
  @Limited('crm:<<tenant>>', {
    permits: 3,
    waitMs: Infinity,
    leaseMs: 5,
    holdAtLeastMs: 5,
    onLost: 'throw',
    awaitRelease: false,
    service: 'billing',
    signal: AbortSignal.timeout(5),
  })
  async all(tenant: string): Promise<string> {
    return tenant;
  }

  @Limited('nightly-report', { permits: 3, onBusy: 'skip' })
  async named(): Promise<string | undefined> {
    return '';
  }

  @Limited('number-of-the-store')
  async withoutNumber(): Promise<void> {}

  @Limited((tenant: string) => `crm:${tenant}`, { permits: 3 })
  observable(_tenant: string, _more: number): Observable<string> {
    return undefined!;
  }

  @Limited<Accepted['generator']>((id) => id.toFixed(), { permits: 3 })
  async *generator(_id: number): AsyncGenerator<string> {}

  @Locked('order:<<id>>')
  @Limited('bank', { permits: 3 })
  async both(id: string): Promise<string> {
    return id;
  }
}

export class Refused {
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  @Limited('crm', { permits: '3' })
  async text(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Limited('crm', { permits: 3, inside: [] })
  async inside(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Limited('crm', { permits: 3, mode: 'fair' })
  async inTheirOrder(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Limited('crm', { permits: 3, mode: 'read' })
  async toRead(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Limited(['crm', 'bank'], { permits: 3 })
  async several(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Limited((a: string) => [a], { permits: 3 })
  async severalByFunction(_a: string): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked('crm', { permits: 3 })
  async permitsOfLocked(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked('crm', { waitMs: 3, permits: 3 })
  async permitsOfLockedBesideAnother(): Promise<void> {}

  // @ts-expect-error must return a Promise, an Observable or an AsyncIterable
  @Limited('crm', { permits: 3 })
  synchronous(): number {
    return 1;
  }

  // @ts-expect-error makes the method return undefined
  @Limited('crm', { permits: 3, onBusy: 'skip' })
  async mustReturn(): Promise<string> {
    return '';
  }

  // @ts-expect-error does not wait, so it cannot have a waitMs
  @Limited('crm', { permits: 3, onBusy: 'skip', waitMs: 5 })
  async waitsToSkip(): Promise<void> {}

  // @ts-expect-error parameters do not match
  @Limited((id: number) => String(id), { permits: 3 })
  async otherParameters(_id: string): Promise<void> {}
}

export const service = async (): Promise<void> => {
  const number = await locks.permits('crm', { permits: 3 }).withPermit(() => 1);
  const text = await locks.permits('crm').withPermit(async ({ key }) => key);
  const lease = await locks.permits('crm', { permits: 3 }).acquire({ waitMs: 5 });
  const maybe = await locks.permits('crm').tryAcquire();
  expectTypeOf(number).toEqualTypeOf<number>();
  expectTypeOf(text).toEqualTypeOf<string>();
  expectTypeOf(lease).toEqualTypeOf<Lease>();
  expectTypeOf(maybe).toEqualTypeOf<Lease | null>();
  const state = await locks.inspect('crm');
  expectTypeOf(state!.kind).toEqualTypeOf<LockKind>();
  const owners = state!.holders.map(({ owner }) => owner);
  expectTypeOf(owners).toEqualTypeOf<string[]>();
  expectTypeOf(locks.held()[0]!.kind).toEqualTypeOf<LockKind>();
  expectTypeOf<LimitedMetadata['options']>().toEqualTypeOf<LimitedOptions>();
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  await locks.permits('crm', { permits: '3' }).withPermit(() => 1);
  // @ts-expect-error Argument of type 'string[]' is not assignable
  await locks.permits(['a', 'b'], { permits: 3 }).withPermit(() => 1);
  // @ts-expect-error Argument of type 'string[]' is not assignable
  await locks.permits(['a', 'b'], { permits: 3 }).acquire();
  // @ts-expect-error is not assignable to type 'undefined'
  await locks.permits('crm', { permits: 3 }).withPermit({ inside: [] }, () => 1);
  // @ts-expect-error Type 'string' is not assignable to type 'undefined'
  await locks.permits('crm', { permits: 3 }).acquire({ onLost: 'throw' });
  // @ts-expect-error Type 'false' is not assignable to type 'undefined'
  await locks.permits('crm', { permits: 3 }).tryAcquire({ awaitRelease: false });
  // @ts-expect-error Type 'string' is not assignable to type 'undefined'
  await locks.permits('crm', { permits: 3 }).withPermit({ mode: 'fair' }, () => 1);
  // @ts-expect-error Type 'string' is not assignable to type 'undefined'
  await locks.permits('crm', { permits: 3 }).acquire({ mode: 'read' });
  // @ts-expect-error Type 'number' is not assignable to type 'undefined'
  await locks.withLock('crm', { permits: 3 }, () => 1);
  // @ts-expect-error Type 'number' is not assignable to type 'undefined'
  await locks.acquire('crm', { permits: 3 });
  // @ts-expect-error Type 'number' is not assignable to type 'undefined'
  await locks.tryAcquire('crm', { permits: 3 });
};

/** Options in a variable, which the compiler does not check for what is too much. */
export const inVariables = async (
  section: PermitSectionOptions,
  limited: LimitedOptions,
  plain: PermitOptions,
  locked: LockedOptions,
): Promise<void> => {
  await locks.permits('crm').withPermit(section, () => 1);
  await locks.permits('crm').withPermit(plain, () => 1);
  await locks.permits('crm').acquire(plain);
  // @ts-expect-error Types of property 'onLost' are incompatible
  await locks.permits('crm').acquire(section);
  // @ts-expect-error Argument of type 'LimitedOptions' is not assignable
  await locks.permits('crm').withPermit(limited, () => 1);
  // @ts-expect-error Argument of type 'LockedOptions' is not assignable
  await locks.permits('crm').withPermit(locked, () => 1);
};
