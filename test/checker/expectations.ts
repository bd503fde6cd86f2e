/** The numbers a history is judged by, in ms. */
export interface Expectations {
  /** How long two beliefs may overlap: what clocks of different speed come to in one lease. */
  readonly overlapMs: number;
  /** How far apart the clocks of the store and of its clients may be in the history. */
  readonly clocksMs: number;
  /** A request that was sent this much after a deadline was meant to be sent in time. */
  readonly sendingMs: number;
  /** How much later than its deadline, or than the end of the command in flight, a caller may return. */
  readonly latenessMs: number;
  /** How much later than the end of its lease a loss may be announced. */
  readonly lossMs: number;
  /** By how much a lease may get shorter when it is renewed, beside the time its request was under way. */
  readonly shorteningMs: number;
  /** How long a free key may stay free while somebody who could take it waits. */
  readonly promptMs: number;
  /** How often a process looks at its place in line, whatever it was told. */
  readonly keepingMs: number;
  /** How long a hold may be there at first that was granted to who waits in line, whatever lease it asked for. */
  readonly provisionalLeaseMs: number;
  /** For how long leases of one process may have one hold, from the first one's beginning to the last one's. */
  readonly batchMs: number;
}

/** What is promised over a network that is quick when nothing disturbs it. */
export const EXPECTATIONS: Expectations = {
  overlapMs: 2,
  clocksMs: 0,
  sendingMs: 2,
  latenessMs: 50,
  lossMs: 100,
  shorteningMs: 20,
  promptMs: 100,
  keepingMs: 0,
  provisionalLeaseMs: 0,
  batchMs: 51,
};
