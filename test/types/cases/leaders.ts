// Types that `@Leader` and `lead` accept, and types that they refuse.
import { expectTypeOf } from 'vitest';
import { Leader, type Candidate, type Leadership, type LockService } from 'nest-redis-lock';

declare const locks: LockService;

export class Leaders {
  @Leader('a')
  async lead(leadership: Leadership): Promise<void> {
    expectTypeOf(leadership.signal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(leadership.fencingToken).toEqualTypeOf<number>();
    // It may be taken out of its object.
    const { resign } = leadership;
    resign();
  }

  @Leader('b', { watchdogMs: 10_000, label: 'b', service: 'billing' })
  withoutArguments(): void {}

  @Leader('c')
  optional(leadership: Pick<Leadership, 'key'>, times?: number): number {
    return leadership.key.length + (times ?? 0);
  }

  // @ts-expect-error not assignable to type '(leadership: Leadership) => unknown'
  @Leader('d')
  async needsMore(_leadership: Leadership, id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error Type 'Leadership' is not assignable to type 'string'
  @Leader('e')
  async needsAnother(id: string): Promise<string> {
    return id;
  }

  readonly config = { leaseMs: 5_000 };

  @Leader('varying', { label: 'v' }, (self: Leaders) => ({ watchdogMs: self.config.leaseMs }))
  async varies(): Promise<void> {}

  // @ts-expect-error Type '{ waitMs: number; }' has no properties in common
  @Leader('wrong', {}, () => ({ waitMs: 5 }))
  async variesWrongly(): Promise<void> {}

  // @ts-expect-error 'Leaders' is not assignable to parameter of type 'Date'
  @Leader('other', {}, (self: Date) => ({ watchdogMs: self.getTime() }))
  async ofAnotherClass(): Promise<void> {}

  // @ts-expect-error 'waitMs' does not exist in type 'LeaderOptions'
  @Leader('f', { waitMs: 5 })
  async waits(): Promise<void> {}

  // @ts-expect-error not assignable to parameter of type 'string'
  @Leader(['g', 'h'])
  async several(): Promise<void> {}
}

export const byHand = async (): Promise<void> => {
  const candidate = locks.lead('k', async ({ signal }) => signal.aborted, { watchdogMs: 5_000 });
  expectTypeOf(candidate).toEqualTypeOf<Candidate>();
  expectTypeOf(candidate.isLeader).toEqualTypeOf<boolean>();
  await using _other = locks.lead('l', () => undefined);
  // @ts-expect-error 'service' does not exist in type 'LeadOptions'
  locks.lead('m', () => undefined, { service: 'billing' });
  locks.on('leader-lost', ({ reason, ledMs, cause }) => {
    expectTypeOf(ledMs).toEqualTypeOf<number>();
    expectTypeOf(cause).toEqualTypeOf<unknown>();
    if (reason === 'resigned' || reason === 'expired') return;
    // @ts-expect-error no overlap
    if (reason === 'nothing') return;
  });
  await candidate.stop();
};
