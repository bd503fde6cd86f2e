import type { Claim, QueueEntryTerms } from '../../../../core/seam/claim.js';

/** Returns the number of tokens as scripts take it: negative for tokens of Redisson's counter. */
export const tokensRequested = ({ perKeyCounter }: Pick<Claim, 'perKeyCounter'>, tokens: number): number =>
  perKeyCounter ? -tokens : tokens;

/** Writes the terms of queue entries as the acquire script takes them. Keeps the last text: most claims have the same. */
export class EntryText {
  private terms: QueueEntryTerms | undefined;
  private perKeyCounter: boolean | undefined;
  private notSubscribed = false;
  private text = '';

  of(terms: QueueEntryTerms, perKeyCounter: boolean | undefined, notSubscribed: boolean): string {
    const isLast =
      terms === this.terms && perKeyCounter === this.perKeyCounter && notSubscribed === this.notSubscribed;
    if (isLast) return this.text;
    this.terms = terms;
    this.perKeyCounter = perKeyCounter;
    this.notSubscribed = notSubscribed;
    const { aliveMs, provisionalLeaseMs } = terms;
    const tokens = tokensRequested({ perKeyCounter }, terms.tokens);
    return (this.text = `${aliveMs} ${provisionalLeaseMs} ${tokens} ${notSubscribed ? 1 : 0}`);
  }
}
