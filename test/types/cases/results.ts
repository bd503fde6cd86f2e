// What a locked method may return: something that ends later.
import type { Observable } from 'rxjs';
import { Locked } from 'nest-redis-lock';

declare const stream: Observable<number>;
declare const cursor: AsyncIterable<number>;
declare const anything: any; // eslint-disable-line @typescript-eslint/no-explicit-any

export class Accepted {
  @Locked('key')
  async nothing(): Promise<void> {}

  @Locked('key')
  async number(): Promise<number> {
    return 1;
  }

  @Locked('key')
  promise(): Promise<string> {
    return Promise.resolve('');
  }

  @Locked('key')
  async inferred() {
    return { id: 1 };
  }

  @Locked('key')
  observable(): Observable<number> {
    return stream;
  }

  @Locked('key')
  async observableLater(): Promise<Observable<number>> {
    return stream;
  }

  @Locked('key')
  iterable(): AsyncIterable<number> {
    return cursor;
  }

  @Locked('key')
  async *generator(): AsyncGenerator<number, string, boolean> {
    yield 1;
    return '';
  }

  @Locked('key')
  any(): typeof anything {
    return anything;
  }

  @Locked('key')
  never(): Promise<never> {
    return Promise.reject(new Error());
  }

  @Locked()
  async withoutKey(): Promise<void> {}

  @Locked({ waitMs: 5 })
  async onlyOptions(): Promise<void> {}
}

export class Refused {
  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked('key')
  number(): number {
    return 1;
  }

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked('key')
  nothing(): void {}

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked('key')
  inferred() {
    return { id: 1 };
  }

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked('key')
  *generator(): Generator<number> {
    yield 1;
  }

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked('key')
  sometimes(): Promise<number> | number {
    return 1;
  }

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked()
  withoutKey(): number {
    return 1;
  }

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked({ waitMs: 5 })
  onlyOptions(): number {
    return 1;
  }

  // @ts-expect-error a locked method must return a Promise, an Observable or an AsyncIterable
  @Locked((id: string) => id)
  functionKey(id: string): string {
    return id;
  }

  // @ts-expect-error Unable to resolve signature of method decorator
  @Locked('key')
  get accessor(): string {
    return '';
  }

  // @ts-expect-error Unable to resolve signature of property decorator
  @Locked('key')
  property = async (): Promise<void> => {};
}
