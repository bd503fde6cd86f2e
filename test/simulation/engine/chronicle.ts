import type { HistoryEvent } from '../../checker/history.js';

/** To a thousandth of a ms, so that a history can be read. */
export const rounded = (time: number): number => Math.round(time * 1_000) / 1_000;

/** Collects the history of a run. */
export class Chronicle {
  readonly events: HistoryEvent[] = [];

  add(event: HistoryEvent): void {
    const written = { ...event, at: rounded(event.at) } as HistoryEvent & { until?: number };
    if (written.until !== undefined) written.until = rounded(written.until);
    this.events.push(written);
  }
}
