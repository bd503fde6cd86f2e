import { replyError } from './redis-failure.js';
import { impossible } from './strict-replies.js';

/** What each script of a batch answered; its error, if that is what it was. */
export const readBatch = (reply: unknown, count: number): unknown[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown) => {
    if (!Array.isArray(one)) return one;
    const [message, ...more] = one as unknown[];
    if (typeof message !== 'string' || more.length > 0) throw impossible(one);
    return replyError(message);
  });
};
