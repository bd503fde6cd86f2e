// onBusy: 'skip' makes a method return undefined, so its type has to admit that.
import type { Observable } from 'rxjs';
import { Locked } from 'nest-redis-lock';

declare const stream: Observable<number>;
declare const anything: any; // eslint-disable-line @typescript-eslint/no-explicit-any

export class Accepted {
  @Locked('key', { onBusy: 'skip' })
  async nothing(): Promise<void> {}

  @Locked('key', { onBusy: 'skip' })
  async maybe(): Promise<number | undefined> {
    return 1;
  }

  @Locked('key', { onBusy: 'skip' })
  async undefinedOnly(): Promise<undefined> {
    return undefined;
  }

  @Locked('key', { onBusy: 'skip' })
  async any(): Promise<typeof anything> {
    return anything;
  }

  @Locked('key', { onBusy: 'skip' })
  async unknown(): Promise<unknown> {
    return 1;
  }

  @Locked('key', { onBusy: 'skip' })
  observable(): Observable<number> {
    return stream;
  }

  @Locked('key', { onBusy: 'skip' })
  async *generator(): AsyncGenerator<number> {
    yield 1;
  }

  @Locked('nightly-report', { onBusy: 'skip', holdAtLeastMs: 30_000 })
  async job(): Promise<void> {}

  @Locked('key', { onBusy: 'skip', waitMs: 0 })
  async asksOnce(): Promise<void> {}

  @Locked('key', { onBusy: 'skip', waitMs: undefined })
  async asksOnceToo(): Promise<void> {}

  @Locked('key', { onBusy: () => undefined, waitMs: 2_000 })
  async waitsAndGivesUp(): Promise<number | undefined> {
    return 1;
  }

  @Locked(['a', 'b'], { onBusy: 'skip' })
  async several(): Promise<void> {}

  @Locked((id: string) => id, { onBusy: 'skip' })
  async functionKey(id: string): Promise<string | undefined> {
    return id;
  }

  // A fallback gives something in the place of the result.
  @Locked('key', { onBusy: () => 0 })
  async fallback(): Promise<number> {
    return 1;
  }

  @Locked('key', { onBusy: undefined })
  async off(): Promise<number> {
    return 1;
  }
}

export class Refused {
  // @ts-expect-error onBusy: "skip" does not wait, so it cannot have a waitMs
  @Locked('key', { onBusy: 'skip', waitMs: 2_000 })
  async patient(): Promise<void> {}

  // @ts-expect-error onBusy: "skip" does not wait, so it cannot have a waitMs
  @Locked(['a', 'b'], { onBusy: 'skip', waitMs: Infinity })
  async endless(): Promise<void> {}

  // @ts-expect-error onBusy: "skip" does not wait, so it cannot have a waitMs
  @Locked((id: string) => id, { onBusy: 'skip', waitMs: 5 })
  async patientFunction(id: string): Promise<string | undefined> {
    return id;
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked('key', { onBusy: 'skip' })
  async number(): Promise<number> {
    return 1;
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked('key', { onBusy: 'skip' })
  async orNull(): Promise<number | null> {
    return null;
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked('key', { waitMs: 5, onBusy: 'skip' })
  async withMore(): Promise<{ id: number }> {
    return { id: 1 };
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked(['a', 'b'], { onBusy: 'skip' })
  async several(): Promise<number> {
    return 1;
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked((id: string) => id, { onBusy: 'skip' })
  async functionKey(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked(() => 'key', { onBusy: 'skip' })
  async functionKeyWithoutParameters(): Promise<string> {
    return '';
  }

  // @ts-expect-error onBusy: "skip" makes the method return undefined, which its type does not allow
  @Locked<Refused['explicit']>((id) => id, { onBusy: 'skip' })
  async explicit(id: string): Promise<string> {
    return id;
  }
}
