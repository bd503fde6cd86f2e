/** The middle value; of an even number of values, the mean of the two in the middle. */
export const median = (values: readonly number[]): number => {
  if (values.length === 0) throw new Error('the median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Jain's fairness index: 1 when all got the same, 1/n when one got everything. */
export const jain = (shares: readonly number[]): number => {
  const total = sum(shares);
  if (total === 0) return 0;
  return total ** 2 / (shares.length * sum(shares.map((share) => share ** 2)));
};

/** Returns the value below which `percent` of the values are. `sorted` is ascending. */
export const percentile = (sorted: readonly number[], percent: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]!;
