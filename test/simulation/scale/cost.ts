/** What went over the network, and what the server executed, in some time. */
export interface Cost {
  /** Commands that processes sent. */
  readonly requests: number;
  /** Bytes of these commands, and of all that the server sent. */
  readonly bytes: number;
  /** Messages that the server sent, one for each subscriber that it reached. */
  readonly messages: number;
  /** Commands that the server executed, also inside scripts. */
  readonly commands: number;
  /** Entries of wait queues and of sets of holders that scripts read. */
  readonly entries: number;
}

export const NO_COST: Cost = { requests: 0, bytes: 0, messages: 0, commands: 0, entries: 0 };

const NAMES = Object.keys(NO_COST) as (keyof Cost)[];

const mapped = (valueOf: (name: keyof Cost) => number): Cost =>
  Object.fromEntries(NAMES.map((name) => [name, valueOf(name)])) as unknown as Cost;

/** Returns the cost between two readings. */
export const between = (before: Cost, after: Cost): Cost => mapped((name) => after[name] - before[name]);

/** Returns the cost for each of `count` things. */
export const perEach = (cost: Cost, count: number): Cost => mapped((name) => cost[name] / count);

/** Returns Jain's fairness index: 1 when all have got the same, 1/n when one has got everything. */
export const jain = (shares: readonly number[]): number => {
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const total = sum(shares);
  return total === 0 ? 0 : total ** 2 / (shares.length * sum(shares.map((share) => share ** 2)));
};
