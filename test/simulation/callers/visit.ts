/** One try of a caller. */
export interface Visit {
  readonly key: string;
  /** Number of permits of the key; undefined for a lock. */
  readonly permits?: number;
  /** Not before that, in ms since the beginning. */
  readonly at?: number;
  readonly thinkMs: number;
  readonly waitMs: number;
  /** How long it works inside. */
  readonly workMs: number;
}
