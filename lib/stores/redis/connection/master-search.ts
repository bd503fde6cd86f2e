import { isArray } from '../../../core/errors/describe.js';
import { isReplyError, unwrapped } from './redis-failure.js';

const NO_MASTER = /^(?:READONLY|LOADING|MASTERDOWN)\b/;
const NO_REPLICAS = /^NOREPLICAS\b/;
/** Shortest time between two connections that are given up because the master has too few replicas, in ms. */
const LOOK_AGAIN_MS = 1_000;

/** Decides which replies say that the master has to be looked for: a new connection leads to it. */
export class MasterSearch {
  private lookedAt = -Infinity;

  /** Whether a reply, an error or a list with errors, says that this server is not the master, or perhaps not any more. */
  isDueTo(reply: unknown): boolean {
    const says = textsOf(reply);
    if (says.some((text) => NO_MASTER.test(text))) return true;
    if (!says.some((text) => NO_REPLICAS.test(text))) return false;
    // A master without its replicas may have been cut off from a new one. Or it has lost them: then a new connection for
    // each refusal is of no use.
    const now = performance.now();
    if (now < this.lookedAt + LOOK_AGAIN_MS) return false;
    this.lookedAt = now;
    return true;
  }
}

/** What may be the text of an error: in a list it stands by itself, in a list of its own, or behind "error ". */
const textsOf = (reply: unknown): string[] => {
  if (isReplyError(reply)) return [unwrapped(reply.message)];
  if (!isArray(reply)) return [];
  return reply.flatMap((one) =>
    typeof one === 'string' ? [unwrapped(one.replace(/^error /, ''))] : textsOf(one),
  );
};
