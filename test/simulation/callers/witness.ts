/** A promise that was broken. */
export interface Broken {
  readonly rule:
    'exclusion' | 'tokens' | 'writes' | 'endless' | 'leftovers' | 'unhandled' | 'nobody' | 'wake-up';
  readonly text: string;
}

/** A hold, as its caller sees it. */
export interface Belief {
  readonly who: string;
  readonly key: string;
  /** Undefined for a permit. */
  readonly token: number | undefined;
  /** Maximum number of holders at a time. */
  readonly permits: number;
  /** Whether it is shared with others that read. Default: it is not. */
  readonly isShared?: () => boolean;
  /** When its caller began to request it, in ms of virtual time. */
  readonly wantedSince: number;
  /** Until when its caller may believe to hold the key, in ms of virtual time; 0 when it does not. */
  readonly validUntil: () => number;
}

/** A caller that holds a key, until it leaves. */
export interface Holding {
  /** The caller writes to a resource that rejects smaller tokens. */
  writes(): void;
  leaves(): void;
}

/** Sees which callers believe to hold a key, and which tokens a resource gets to see. */
export class Witness {
  readonly broken: Broken[] = [];
  /** What callers and listeners saw, in order; see `programs`. */
  readonly visible: string[] = [];
  grants = 0;
  /** Holds that were requested before are not judged: the clock of their server has jumped ahead. */
  excusedBefore = -Infinity;
  private readonly keyExcusedBefore = new Map<string, number>();
  private readonly holders = new Set<Belief>();
  private readonly lastToken = new Map<string, number>();
  private readonly lastWrite = new Map<string, number>();

  constructor(private readonly now: () => number) {}

  /** A caller has the key. */
  enters(holder: Belief): Holding {
    this.grants += 1;
    const { who, key, token } = holder;
    const last = this.lastToken.get(key) ?? 0;
    if (token !== undefined) {
      if (token <= last && !this.isExcused(holder))
        this.report('tokens', `${who} has ${token} for ${key}, and ${last} was given before`);
      this.lastToken.set(key, Math.max(last, token));
    }
    this.note(who, `has ${key} ${token ?? ''}`);
    this.holders.add(holder);
    this.look();
    return {
      writes: () => this.wrote(holder),
      leaves: () => void this.holders.delete(holder),
    };
  }

  /** Holds of a key that are requested before this moment are not judged: the key was forced open. */
  excuse(key: string, before: number): void {
    this.keyExcusedBefore.set(key, before);
  }

  /** Looks whether more callers than may believe at this moment to have the same key. */
  look(): void {
    const now = this.now();
    const valid = new Map<string, Belief[]>();
    for (const holder of this.holders) {
      if (holder.validUntil() <= now || this.isExcused(holder)) continue;
      const others = valid.get(holder.key) ?? [];
      const rival = others.find((other) => !isShared(other) || !isShared(holder));
      if (rival && others.length >= holder.permits)
        this.report('exclusion', `${rival.who} and ${holder.who} have ${holder.key}`);
      valid.set(holder.key, [...others, holder]);
    }
  }

  note(who: string, what: string): void {
    this.visible.push(`${this.now().toFixed(3)} ${who} ${what}`);
  }

  report(rule: Broken['rule'], text: string): void {
    this.broken.push({ rule, text: `${this.now().toFixed(3)} ${text}` });
  }

  private wrote(holder: Belief): void {
    const { who, key, token } = holder;
    if (token === undefined || this.isExcused(holder)) return;
    const last = this.lastWrite.get(key) ?? 0;
    if (token < last) this.report('writes', `${who} writes to ${key} with ${token} after ${last}`);
    this.lastWrite.set(key, Math.max(last, token));
  }

  private isExcused({ key, wantedSince }: Belief): boolean {
    return wantedSince < this.excusedBefore || wantedSince < (this.keyExcusedBefore.get(key) ?? -Infinity);
  }
}

const isShared = (holder: Belief): boolean => holder.isShared?.() ?? false;
