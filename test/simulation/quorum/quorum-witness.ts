import type { Lease } from '../../../lib/core/lease/lease.js';

/** A promise that was broken. */
export interface Broken {
  readonly rule: 'exclusion' | 'tokens' | 'writes' | 'endless' | 'leftovers' | 'unhandled' | 'nobody';
  readonly text: string;
}

interface Holder {
  readonly who: string;
  readonly key: string;
  readonly token: number;
  /** Until when it may believe to hold the key, as the world counts; 0 when it does not. */
  readonly validUntil: () => number;
}

/** Sees who believes to hold what, and which tokens a resource gets to see. */
export class QuorumWitness {
  readonly broken: Broken[] = [];
  private readonly holders = new Set<Holder>();
  private readonly lastToken = new Map<string, number>();
  private readonly lastWrite = new Map<string, number>();
  grants = 0;

  constructor(private readonly now: () => number) {}

  /** A caller has the key. Gives what is to be called when it gives it back. */
  enters(who: string, key: string, lease: Lease, validUntil: () => number): () => void {
    this.grants += 1;
    const token = lease.fencingToken;
    const last = this.lastToken.get(key) ?? 0;
    if (token <= last) this.report('tokens', `${who} has ${token} for ${key}, and ${last} was given before`);
    this.lastToken.set(key, Math.max(last, token));
    const holder: Holder = { who, key, token, validUntil };
    this.holders.add(holder);
    this.look();
    return () => this.holders.delete(holder);
  }

  /** A holder that believes to have the key writes: a resource that looks at tokens may not see an older one later. */
  writes(who: string, key: string, token: number): void {
    const last = this.lastWrite.get(key) ?? 0;
    if (token < last) this.report('writes', `${who} writes to ${key} with ${token} after ${last}`);
    this.lastWrite.set(key, Math.max(last, token));
  }

  /** Whether two believe at this moment to have the same key. */
  look(): void {
    const now = this.now();
    const valid = new Map<string, Holder>();
    for (const holder of this.holders) {
      if (holder.validUntil() <= now) continue;
      const other = valid.get(holder.key);
      if (other) this.report('exclusion', `${other.who} and ${holder.who} have ${holder.key}`);
      valid.set(holder.key, holder);
    }
  }

  report(rule: Broken['rule'], text: string): void {
    this.broken.push({ rule, text: `${this.now().toFixed(3)} ${text}` });
  }
}
