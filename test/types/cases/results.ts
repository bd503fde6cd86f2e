// What a locked method may return: something that ends later.
import { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { Locked } from 'nest-redis-lock';

declare const stream: Observable<number>;
declare const cursor: AsyncIterable<number>;
declare const rows: AsyncGenerator<number, string, boolean>;
declare const anything: any; // eslint-disable-line @typescript-eslint/no-explicit-any

/** A driver's: it has more than an iteration needs. */
class Cursor implements AsyncIterable<number> {
  [Symbol.asyncIterator](): AsyncIterator<number> {
    return cursor[Symbol.asyncIterator]();
  }

  async close(): Promise<void> {}
}

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
  iterableIterator(): AsyncIterableIterator<number> {
    return rows;
  }

  // Not async: at run time a promise, which has all that a generator has.
  @Locked('key')
  returnedGenerator(): AsyncGenerator<number, string, boolean> {
    return rows;
  }

  @Locked('key', { onBusy: 'skip' })
  skippedIterable(): AsyncIterable<number> {
    return cursor;
  }

  @Locked('key')
  async cursor(): Promise<Cursor> {
    return new Cursor();
  }

  @Locked('key')
  cursorLater(): Promise<Cursor> {
    return Promise.resolve(new Cursor());
  }

  @Locked('key')
  async webStream(): Promise<ReadableStream<number>> {
    return new ReadableStream();
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
  @Locked((id: string) => id)
  functionKey(id: string): string {
    return id;
  }

  // @ts-expect-error a method that is not async can be iterated, but has no further methods: return a Promise of it
  @Locked('key')
  cursor(): Cursor {
    return new Cursor();
  }

  // @ts-expect-error a method that is not async can be iterated, but has no further methods: return a Promise of it
  @Locked('key')
  webStream(): ReadableStream<number> {
    return new ReadableStream();
  }

  // @ts-expect-error a method that is not async can be iterated, but has no further methods: return a Promise of it
  @Locked((id: string) => id)
  file(_id: string): Readable {
    return Readable.from([]);
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
