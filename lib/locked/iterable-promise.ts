/** Returns the iterator of a promise's result, or throws. */
export type Iterate = (value: unknown) => AsyncIterator<unknown, unknown, unknown>;

type Steps = AsyncIterator<unknown, unknown, unknown>;

/**
 * Result of a locked method that returns an async iterable and is not async itself: a promise of the iterable, which
 * can also be iterated like it. `for await (const row of service.rows())` and `await service.rows()` both work.
 */
export class IterablePromise extends Promise<unknown> implements AsyncGenerator<unknown, unknown, unknown> {
  private iterate!: Iterate;
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

  /**
   * Creates the promise and begins the work.
   *
   * @param run begins the work; it may resolve the promise before the work ends
   */
  static of(
    iterate: Iterate,
    isForReader: boolean,
    run: (promise: IterablePromise, resolve: (value: unknown) => void) => Promise<unknown>,
  ): IterablePromise {
    let resolve!: (value: unknown) => void;
    let refuse!: (error: unknown) => void;
    const promise = new IterablePromise((...settle) => ([resolve, refuse] = settle));
    promise.iterate = iterate;
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

  private iterator(): Promise<Steps> {
    this.isRead = true;
    return (this.steps ??= this.then((value) => this.iterate(value)));
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
