import { from, Observable, observable, type ObservableInput } from 'rxjs';

type Steps = AsyncIterator<unknown, unknown, unknown>;

/** How readers get the items of a result. */
export interface Items {
  /** Returns the iterator of the promise's result, or throws. */
  iterate(value: unknown): Steps;
  /** Returns what rxjs gets for the promise's result. */
  flatten(value: unknown): ObservableInput<unknown>;
  /** Calls the method as one that is declared to return an Observable. */
  observe(): Observable<unknown>;
}

/**
 * Result of a locked method that is not async itself, and may return a promise, an async iterable or an Observable. It is
 * a promise that can also be read like these: `await service.rows()`, `for await (const row of service.rows())` and
 * `service.rows().subscribe(…)` all work.
 */
export class IterablePromise extends Promise<unknown> implements AsyncGenerator<unknown, unknown, unknown> {
  private items!: Items;
  private steps: Promise<Steps> | undefined;
  /**
   * Whether a caller iterates it, or certainly will. A failure then waits for that caller, and is never an unhandled
   * rejection.
   */
  private isForReader = false;
  private isRequested = false;
  private refuse!: (error: unknown) => void;
  private failure: { readonly error: unknown } | undefined;
  /** Whether a caller has begun to iterate it. */
  isRead = false;
  private observed: Observable<unknown> | undefined;
  private hasBegun = false;

  /**
   * Creates the promise and begins the work.
   *
   * @param run begins the work; it may resolve the promise before the work ends
   */
  static of(
    items: Items,
    isForReader: boolean,
    run: (promise: IterablePromise, resolve: (value: unknown) => void) => Promise<unknown>,
  ): IterablePromise {
    let resolve!: (value: unknown) => void;
    let refuse!: (error: unknown) => void;
    const promise = new IterablePromise((...settle) => ([resolve, refuse] = settle));
    promise.items = items;
    promise.isForReader = isForReader;
    promise.refuse = refuse;
    run(promise, resolve).then(resolve, (error: unknown) => promise.fail(error));
    return promise;
  }

  /** `then` returns a plain promise, which cannot be iterated. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then<A = unknown, B = never>(
    onFulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isRequested = true;
    if (this.failure) this.refuse(this.failure.error);
    return super.then(onFulfilled, onRejected);
  }

  [Symbol.asyncIterator](): this {
    // From here on the reader gets a failure, at its next item.
    this.isForReader = true;
    this.isRead = true;
    return this;
  }

  async next(...sent: [] | [unknown]): Promise<IteratorResult<unknown, unknown>> {
    return (await this.iterator()).next(...sent);
  }

  async return(value: unknown): Promise<IteratorResult<unknown, unknown>> {
    const steps = await this.iterator();
    return steps.return ? steps.return(await value) : { done: true, value };
  }

  async throw(error: unknown): Promise<IteratorResult<unknown, unknown>> {
    const steps = await this.iterator();
    if (steps.throw) return steps.throw(error);
    await steps.return?.();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return(undefined);
  }

  subscribe(...observer: unknown[]): unknown {
    return this.asObservable().subscribe(...(observer as []));
  }

  pipe(...operators: unknown[]): unknown {
    return this.asObservable().pipe(...(operators as []));
  }

  forEach(next: (value: unknown) => void): Promise<void> {
    return this.asObservable().forEach(next);
  }

  /** Lets rxjs flatten it, for example in `mergeMap`. */
  [observable](): Observable<unknown> {
    return this.flattened();
  }

  private flattened(): Observable<unknown> {
    return new Observable((subscriber) => {
      this.then(
        (value) => from(this.items.flatten(value)).subscribe(subscriber),
        (error: unknown) => subscriber.error(error),
      );
    });
  }

  /** Returns whether the caller has subscribed at once: then each subscription locks by itself. */
  isObserved(): boolean {
    this.hasBegun = true;
    return this.observed !== undefined;
  }

  /** Returns whether a caller awaits it. If not, a failure waits for a reader. */
  isAwaited(): boolean {
    this.isForReader = true;
    return this.isRequested;
  }

  private asObservable(): Observable<unknown> {
    this.isForReader = true;
    return this.hasBegun ? this.flattened() : (this.observed ??= this.items.observe());
  }

  private iterator(): Promise<Steps> {
    this.isRead = true;
    return (this.steps ??= this.then((value) => this.items.iterate(value)));
  }

  /**
   * Rejects the promise, or keeps the failure for the reader. Hiding it by a further reaction would keep V8 from
   * following the stack to the caller.
   */
  private fail(error: unknown): void {
    if (this.isForReader && !this.isRequested) this.failure = { error };
    else this.refuse(error);
  }
}
