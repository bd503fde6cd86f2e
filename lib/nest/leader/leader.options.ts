import type { LeaderFunction } from './candidate.js';

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

/** A method with `@Leader`. */
export interface LeaderMethod {
  readonly name: PropertyKey;
  /** `Class.method`, for messages. */
  readonly where: string;
  readonly key: string;
  readonly options: LeadOptions;
  /** Returns the options of one candidacy. Undefined when they do not vary. */
  readonly optionsOf: ((self: unknown, args: readonly unknown[]) => LeadOptions) | undefined;
  readonly service: string | undefined;
}

/** A method of an object of the app. */
export interface FoundLeader extends LeaderMethod {
  readonly instance: object;
  readonly lead: LeaderFunction;
}
