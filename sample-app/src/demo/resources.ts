/** Closes what was opened, in reverse order, also after one of them fails to close. */
export class Resources implements AsyncDisposable {
  private readonly opened: AsyncDisposable[] = [];

  use<T extends AsyncDisposable>(resource: T): T {
    this.opened.push(resource);
    return resource;
  }

  /** Registers what to do at the end. */
  defer(close: () => unknown): void {
    this.use({ [Symbol.asyncDispose]: async () => void (await close()) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (let last = this.opened.pop(); last; last = this.opened.pop()) {
      try {
        await last[Symbol.asyncDispose]();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, `Could not tidy up: ${errors.join('; ')}`);
  }
}
