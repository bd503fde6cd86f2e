/** What was opened one after the other; the last is ended first. */
export class Opened implements AsyncDisposable {
  private readonly all: AsyncDisposable[] = [];

  use<T extends AsyncDisposable>(one: T): T {
    this.all.push(one);
    return one;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.all.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}
