/** Resolves when all have settled, or when the time is over; says which. */
export const settledWithin = async (
  promises: readonly Promise<unknown>[],
  timeoutMs: number,
): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([Promise.allSettled(promises).then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
};
