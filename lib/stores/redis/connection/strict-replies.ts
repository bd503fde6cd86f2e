/**
 * What the scripts answer, read strictly. Anything that they cannot have said (it came from a proxy, another server,
 * a connection out of step) throws: it must pass neither for "granted" nor for "taken".
 */
export const impossible = (reply: unknown): Error => {
  const shown = Array.isArray(reply) ? `a list of ${reply.length}` : `${typeof reply} ${String(reply)}`;
  return new Error(`no script of this library answers ${shown.slice(0, 60)}`);
};

/** A whole number, or -1 for none: a time left as PTTL has it, or how many were told. */
export const isNumberOrNone = (reply: unknown): reply is number =>
  Number.isInteger(reply) && (reply as number) >= -1;
