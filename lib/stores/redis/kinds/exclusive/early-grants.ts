/** Requests that were sent between two early grants. */
export interface RequestGroup<M> {
  /** Number of its requests in progress. */
  open: number;
  /** Grant that arrived while it was the newest group. */
  early: { readonly owner: string; readonly message: M } | undefined;
}

/**
 * Grants by message that arrive before the reply of the request that enqueued their owner. An owner without a known entry
 * may have such a request in progress, or its caller has given up. That is certain once each request that was in progress
 * on arrival has ended. So each early grant closes a group of requests, and later requests belong to the next group.
 */
export class EarlyGrants<M> {
  private readonly groups: RequestGroup<M>[] = [{ open: 0, early: undefined }];

  /** @param unclaimed receives a grant that no request claimed */
  constructor(private readonly unclaimed: (message: M) => void) {}

  /** Registers a request. Call {@link ended} with the returned group when it has a reply, or has failed. */
  began(): RequestGroup<M> {
    const newest = this.groups.at(-1)!;
    newest.open++;
    return newest;
  }

  /** Keeps a grant of an unknown owner until its request claims it. */
  add(owner: string, message: M): void {
    this.groups.at(-1)!.early = { owner, message };
    this.groups.push({ open: 0, early: undefined });
    this.dropEnded();
  }

  /** Removes a request; returns the grant that arrived before its reply, if there is one. */
  ended(group: RequestGroup<M>, owner: string): M | undefined {
    group.open--;
    if (this.groups.length === 1) return undefined;
    const of = this.groups.find(({ early }) => early?.owner === owner);
    const claimed = of?.early?.message;
    if (of) of.early = undefined;
    this.dropEnded();
    return claimed;
  }

  private dropEnded(): void {
    while (this.groups.length > 1 && this.groups[0]!.open === 0) {
      const { early } = this.groups.shift()!;
      if (early) this.unclaimed(early.message);
    }
  }
}
