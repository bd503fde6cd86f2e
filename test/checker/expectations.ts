/** The numbers a history is judged by, in ms. */
export interface Expectations {
  /** How long two beliefs may overlap: what clocks of different speed come to in one lease. */
  readonly overlapMs: number;
  /** How much later than its deadline, or than the end of the command in flight, a caller may return. */
  readonly latenessMs: number;
  /** How much later than the end of its lease a loss may be announced. */
  readonly lossMs: number;
  /** How long a free key may stay free while somebody who could take it waits. */
  readonly promptMs: number;
}

/** What issue 3 asks for, over a network that is quick when nothing disturbs it. */
export const EXPECTATIONS: Expectations = { overlapMs: 2, latenessMs: 50, lossMs: 100, promptMs: 100 };
