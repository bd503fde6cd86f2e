import { replyError } from './redis-failure.js';
import { impossible } from './strict-replies.js';

/** Returns the reply of each script of a batch; an `Error` for each script that failed. */
export const readBatch = (reply: unknown, count: number): unknown[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown) => {
    if (!Array.isArray(one)) return one;
    const [message, ...more] = one as unknown[];
    if (typeof message !== 'string' || more.length > 0) throw impossible(one);
    return replyError(message);
  });
};
