import { createHash } from 'node:crypto';
import type { Urgency } from '../../load/request-queue.js';
import type { SendTerms } from '../../load/unsent-requests.js';

/** Whose request it is, and until when it may be sent. */
export type OfClaim = Pick<SendTerms, 'owner' | 'until' | 'withdrawnBy'>;

/** An error with which a script itself replies. */
export interface ScriptRefusal {
  /** First word of the error. */
  readonly word: string;
  /** Whether the rest of the error is a complete message for people. */
  readonly plain?: boolean;
  /** See `StoreFailure`. */
  readonly keyOnly?: boolean;
  readonly claimOnly?: boolean;
}

/** A Lua script and the SHA-1 hash under which a server caches it. */
export class Script {
  private hash: string | undefined;

  constructor(
    readonly source: string,
    readonly refusals: readonly ScriptRefusal[] = [],
    /** How soon it is sent when requests wait. */
    readonly urgency: Urgency = 'other',
  ) {}

  /** Made at the first use: an app uses a few of the scripts. */
  get sha(): string {
    return (this.hash ??= createHash('sha1').update(this.source).digest('hex'));
  }
}

/** A command and the function that reads its reply. If the reply cannot be read, the outcome is unknown. */
export interface RedisRequest<T> {
  readonly command: string;
  readonly args: readonly (string | number)[];
  readonly read: (reply: unknown) => T;
  /** Keys to name in the message of a failure. */
  readonly keys?: readonly string[];
  /** Errors with which the script itself may reply. */
  readonly refusals?: readonly ScriptRefusal[];
  /** How soon it is sent when requests wait. Default: at once. */
  readonly urgency?: Urgency | undefined;
  readonly claim?: OfClaim | undefined;
  /** Request to send instead when the server does not know the script. */
  readonly inFull?: () => RedisRequest<T>;
}

/** Returns as how many runs a request counts: a renewal has a key for each of its locks. */
export const runsOf = ({ urgency, keys }: Pick<RedisRequest<unknown>, 'urgency' | 'keys'>): number =>
  urgency === 'renewal' ? Math.max(1, keys?.length ?? 1) : 1;

/** Makes the request that runs a script: by its hash, or in full when the server does not know it. */
export const requestFor = <T>(
  { sha, source, refusals }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  read: (reply: unknown) => T,
  urgency?: Urgency,
  claim?: OfClaim,
): RedisRequest<T> => ({
  command: 'evalsha',
  args: [sha, keys.length, ...keys, ...args],
  read,
  keys,
  refusals,
  urgency,
  claim,
  inFull: () => ({ command: 'eval', args: [source, keys.length, ...keys, ...args], read, keys, refusals }),
});
