import { Script } from '../connection/script.js';
import { SHARDED_GRANT_CHANNEL, GRANT_CHANNEL } from '../kinds/exclusive/queue-functions.js';

const made = new WeakMap<Script, Script>();

/**
 * Returns the same script with sharded Pub/Sub: in a cluster only the server of the channel's slot announces a message.
 * The command with which a script announces the end of a hold is an argument, and does not change here.
 */
export const sharded = (script: Script): Script => {
  const known = made.get(script);
  if (known) return known;
  const source = script.source
    .replaceAll(GRANT_CHANNEL, SHARDED_GRANT_CHANNEL)
    .replaceAll("'publish'", "'spublish'")
    .replaceAll('numsub', 'shardnumsub');
  const own = source === script.source ? script : new Script(source, script.refusals, script.urgency);
  made.set(script, own);
  return own;
};
