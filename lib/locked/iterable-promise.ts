/** Gives the iterator of what a promise was resolved with, or throws. */
export type Iterate = (value: unknown) => AsyncIterator<unknown, unknown, unknown>;

type Steps = AsyncIterator<unknown, unknown, unknown>;

/**
 * What a locked method gives that returns an async iterable and is not itself async: the promise of it, which can be
 * iterated as that could be. `for await (const row of service.rows())` and `await service.rows()` both work.
 */
export class IterablePromise extends Promise<unknown> implements AsyncGenerator<unknown, unknown, unknown> {
  private iterate!: Iterate;
  private steps: Promise<Steps> | undefined;

  static of(
    iterate: Iterate,
    run: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void,
  ): IterablePromise {
    const promise = new IterablePromise(run);
    promise.iterate = iterate;
    return promise;
  }

  /** What `then` gives is no longer iterated. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  [Symbol.asyncIterator](): this {
    // From here on a failure is told to the reader, at its next item.
    this.iterator().catch(() => undefined);
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
    return (this.steps ??= this.then((value) => this.iterate(value)));
  }
}
