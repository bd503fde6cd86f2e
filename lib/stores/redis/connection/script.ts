import { createHash } from 'node:crypto';

/** An error that a script itself answers. */
export interface ScriptRefusal {
  /** The word with which it begins. */
  readonly word: string;
  /** The rest of it says all, in words for people. */
  readonly plain?: boolean;
  /** See `StoreFailure`. */
  readonly keyOnly?: boolean;
  readonly claimOnly?: boolean;
}

/** A Lua script and the hash under which a server caches it. */
export class Script {
  readonly sha: string;

  constructor(
    readonly source: string,
    readonly refusals: readonly ScriptRefusal[] = [],
  ) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }
}
