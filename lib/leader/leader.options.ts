/** Options of a candidate for a leadership. Durations are whole ms; `undefined` keeps the default. */
export interface LeadOptions {
  /**
   * Lease length in ms, and the longest time until another process leads after this one crashed. The lease is renewed every
   * `watchdogMs / 3`. Minimum: 1,000, and more than the module's `commandTimeoutMs`. ZooKeeper has the time-out of its session
   * instead. Default: the module's `watchdogMs` (30,000).
   */
  readonly watchdogMs?: number | undefined;
  /**
   * Name of the leadership in events, metrics, `held()` and the health check; see `AcquireOptions.label`. Default: the key of
   * `@Leader`; by hand `lead`.
   */
  readonly label?: string | undefined;
}

/** Options of `@Leader`. */
export interface LeaderOptions extends LeadOptions {
  /** Name of the lock module to use: the `name` of its `forRoot`. Default: the unnamed one. */
  readonly service?: string | undefined;
}
