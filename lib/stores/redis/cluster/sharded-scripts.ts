import { Script } from '../connection/script.js';
import { SHARDED_TURN_CHANNEL, TURN_CHANNEL } from '../kinds/exclusive/line-functions.js';

const made = new WeakMap<Script, Script>();

/**
 * The same script with sharded Pub/Sub: in a cluster a message goes to those who listen at the server of its channel's
 * slot, and to no other server. What a script is told to announce with is an argument, which is not seen to here.
 */
export const sharded = (script: Script): Script => {
  const known = made.get(script);
  if (known) return known;
  const source = script.source
    .replaceAll(TURN_CHANNEL, SHARDED_TURN_CHANNEL)
    .replaceAll("'publish'", "'spublish'")
    .replaceAll('numsub', 'shardnumsub');
  const own = source === script.source ? script : new Script(source, script.refusals);
  made.set(script, own);
  return own;
};
