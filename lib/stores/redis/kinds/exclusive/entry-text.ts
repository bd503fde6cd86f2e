import type { Claim, QueueEntryTerms } from '../../../../core/seam/claim.js';

/** Returns the number of tokens as scripts take it: negative for tokens of Redisson's counter. */
export const tokensRequested = ({ perKeyCounter }: Claim, tokens: number): number =>
  perKeyCounter ? -tokens : tokens;

/** Writes the terms of queue entries as the acquire script takes them. Keeps the last text: most claims have the same. */
export class EntryText {
  private last: QueueEntryTerms = { aliveMs: 0, provisionalLeaseMs: 0, tokens: 0 };
  private notSubscribed = false;
  private text = '';

  /** @param tokens as the script takes them */
  of({ aliveMs, provisionalLeaseMs }: QueueEntryTerms, tokens: number, notSubscribed: boolean): string {
    const { last } = this;
    const isSame =
      aliveMs === last.aliveMs &&
      provisionalLeaseMs === last.provisionalLeaseMs &&
      tokens === last.tokens &&
      notSubscribed === this.notSubscribed;
    if (isSame) return this.text;
    this.last = { aliveMs, provisionalLeaseMs, tokens };
    this.notSubscribed = notSubscribed;
    return (this.text = `${aliveMs} ${provisionalLeaseMs} ${tokens} ${notSubscribed ? 1 : 0}`);
  }
}
