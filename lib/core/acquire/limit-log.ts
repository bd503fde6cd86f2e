import type { LockLogger } from '../report/lock-events.js';
import type { ShowKey } from '../util/shown-key.js';

/** So that what was told once needs a bounded memory. */
const MAX_KEYS = 1_000;

/** Logs that callers disagree about the limit of a key, once for each key. */
export class LimitLog {
  private readonly reported = new Set<string>();

  constructor(
    private readonly logger: LockLogger,
    private readonly shown: ShowKey,
  ) {}

  /** A claim has set the limit of a key to another one: the store had `before`. */
  readonly changed = (key: string, before: number, now: number | undefined): void => {
    if (this.reported.has(key) || this.reported.size >= MAX_KEYS) return;
    this.reported.add(key);
    this.logger.warn(
      `The permits of "${this.shown(key)}" were ${before} and are ${now} now: callers pass different numbers, and the last ` +
        'one decides. That is so while a new version is deployed; otherwise make them the same. (Said once for a key.)',
    );
  };
}
