/**
 * Makes the error for a reply that no script can have given: it came from a proxy, another server, or a connection out
 * of step. Such a reply must pass neither for "granted" nor for "taken".
 */
export const impossible = (reply: unknown): Error => {
  const shown = Array.isArray(reply) ? `a list of ${reply.length}` : `${typeof reply} ${String(reply)}`;
  return new Error(`no script of this library answers ${shown.slice(0, 60)}`);
};

/** Returns whether a reply is a whole number, or -1 for none: a PTTL, or a number of notified listeners. */
export const isNumberOrNone = (reply: unknown): reply is number =>
  Number.isInteger(reply) && (reply as number) >= -1;
