/** A grant as the message of the granting script has it; see `queue-scripts.ts`. */
export interface GrantMessage {
  readonly holdName: string;
  readonly owner: string;
  /** First token; 0 when none was asked for. */
  readonly token: number;
  readonly tokens: number;
  /** Lease of the hold, in ms. */
  readonly provisionalLeaseMs: number;
  /** Number of queue entries behind it. */
  readonly entriesLeft: number;
}

/** Later versions may add words to the first line. The name of a hold may contain anything, so it comes last. */
const GRANT = /^grant \d{1,9} (\S+) (\d{1,16}) (\d{1,5}) (\d{1,16}) (\d{1,9})(?: [^\n]*)?\n(.+)$/s;

/**
 * Reads a grant from a message of any version. Returns undefined for anything else, because anyone may publish on the
 * channel.
 */
export const readGrantMessage = (text: string): GrantMessage | undefined => {
  const found = GRANT.exec(text);
  if (!found) return undefined;
  const [owner = '', , , , , holdName = ''] = found.slice(1);
  const [token = 0, tokens = 0, provisionalLeaseMs = 0, entriesLeft = 0] = found.slice(2, 6).map(Number);
  if (!Number.isSafeInteger(token)) return undefined;
  return { holdName, owner, token, tokens, provisionalLeaseMs, entriesLeft };
};
