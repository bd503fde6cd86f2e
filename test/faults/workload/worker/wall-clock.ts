const RealDate = Date;
let offsetMs = 0;

/** Stands in for `Date`, with a clock that can be set. */
class SettableDate extends RealDate {
  constructor(...parts: unknown[]) {
    super(...((parts.length === 0 ? [RealDate.now() + offsetMs] : parts) as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

/** Sets the process's wall clock that much forward, or back; its monotonic clock goes on as it was. */
export const jumpWallClock = (ms: number): void => {
  offsetMs += ms;
  globalThis.Date = SettableDate as DateConstructor;
};
