/** A grant as the message of the granting script has it; see `line-scripts.ts`. */
export interface GrantMessage {
  readonly holdName: string;
  readonly owner: string;
  /** First token; 0 when none was asked for. */
  readonly token: number;
  readonly tokens: number;
  /** Lease of the hold, in ms. */
  readonly firstLeaseMs: number;
  /** Number of queue entries behind it. */
  readonly placesLeft: number;
}

/** Hold names may have spaces in them, so they are what is left between the words that have none. */
const GRANT = /^grant 1 (.+) (\S+) (\d{1,16}) (\d{1,5}) (\d{1,16}) (\d{1,9})$/s;

/** Reads a grant from a message; returns undefined for anything else, because anyone may publish on the channel. */
export const readGrantMessage = (text: string): GrantMessage | undefined => {
  const found = GRANT.exec(text);
  if (!found) return undefined;
  const [holdName, owner, ...numbers] = found.slice(1) as [string, string, ...string[]];
  const [token = 0, tokens = 0, firstLeaseMs = 0, placesLeft = 0] = numbers.map(Number);
  if (!Number.isSafeInteger(token)) return undefined;
  return { holdName, owner, token, tokens, firstLeaseMs, placesLeft };
};
