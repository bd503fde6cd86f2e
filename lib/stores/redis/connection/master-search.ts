import { isArray } from '../../../core/util/describe.js';
import type { Runtime } from '../../../core/util/runtime.js';
import { isReplyError, unwrapped } from './redis-failure.js';

const NO_MASTER = /^(?:READONLY|LOADING|MASTERDOWN)\b/;
const NO_REPLICAS = /^NOREPLICAS\b/;
/** Minimum time between two connections that are dropped because the master has too few replicas, in ms. */
const LOOK_AGAIN_MS = 1_000;

/** Decides which replies require a search for the master. A new connection leads to it. */
export class MasterSearch {
  private lookedAt = -Infinity;

  constructor(private readonly runtime: Runtime) {}

  /** Returns whether a reply, an error or a list with errors shows that this server may not be the master any more. */
  isDueTo(reply: unknown): boolean {
    const says = textsOf(reply);
    if (says.some((text) => NO_MASTER.test(text))) return true;
    if (!says.some((text) => NO_REPLICAS.test(text))) return false;
    // A master without replicas may be cut off from a newly promoted one. Or it has only lost its replicas: then a new
    // connection for each refusal is useless.
    const now = this.runtime.now();
    if (now < this.lookedAt + LOOK_AGAIN_MS) return false;
    this.lookedAt = now;
    return true;
  }
}

const isDigit = (character = ''): boolean => character >= '0' && character <= '9';

/** Returns the texts that may be errors: of an error, or in a list a string, a nested list or "error …". */
const textsOf = (reply: unknown): string[] => {
  if (isReplyError(reply)) return [unwrapped(reply.message)];
  if (!isArray(reply)) return [];
  return reply.flatMap((one) => {
    if (typeof one !== 'string') return textsOf(one);
    // Most are tokens.
    return isDigit(one[0]) ? [] : [unwrapped(one.replace(/^error /, ''))];
  });
};
