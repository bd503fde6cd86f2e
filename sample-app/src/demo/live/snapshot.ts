import type { StrategyName } from '../../flash-sale/strategies/strategy-names.js';

// What the server of the page sends, and the page draws. Times are ms since 1970, on the clock of the server.

/** How a sentence is meant: as it should be; wrong; a wait that will end; a mere fact. */
export type Tone = 'good' | 'bad' | 'wait' | 'plain';

/** What just happened, and why it is right or wrong. */
export interface Sentence {
  readonly id: number;
  readonly at: number;
  readonly tone: Tone;
  /** `{left}` stands for the seconds until `until`. */
  readonly text: string;
  readonly until?: number;
  /** The fencing tokens of its grants. */
  readonly tokens?: string;
}

/**
 * Time in which an instance had the lock, for a buyer or for several in a row. Without a lock: in which it sold to a buyer.
 */
export interface Bar {
  readonly id: number;
  readonly from: number;
  /** Undefined while it lasts. */
  readonly to?: number;
  /** The last buyer. */
  readonly buyer: string;
  readonly buyers: number;
  /** Number of them that got an article: not after a stale write, for a second click, or when all is sold. */
  readonly sold: number;
  /** Fencing token of the last buyer's lock; undefined without a lock. */
  readonly token?: number;
}

/** Time in which an instance stood still, or in which a dead one still had the lock. */
export interface Span {
  readonly id: number;
  readonly kind: 'stopped' | 'killed';
  readonly from: number;
  readonly to?: number;
}

/** A write that the database refused. */
export interface Cross {
  readonly id: number;
  readonly at: number;
  readonly token: number;
}

export type LaneState = 'starting' | 'idle' | 'waits' | 'holds' | 'stopped' | 'killed';

/** One instance of the app. */
export interface Lane {
  readonly name: string;
  readonly state: LaneState;
  /** Number of clicks that wait in it, and the buyers of the first ones. */
  readonly waiting: number;
  readonly next: readonly string[];
  /** Number of clicks in work. */
  readonly working: number;
  readonly bars: readonly Bar[];
  readonly spans: readonly Span[];
  readonly crosses: readonly Cross[];
}

/** The lock, while an instance has it: its block is the last one of the lane, and is open. */
export interface LockView {
  /** Index of the lane. */
  readonly lane: number;
  readonly buyer: string;
  readonly token: number;
  /** Which grant of the sale it is, from 1. */
  readonly grant: number;
  readonly endsAt: number;
}

/** What came of the sale so far. */
export interface Numbers {
  readonly sold: number;
  readonly oversold: number;
  readonly doubleOrders: number;
  readonly chargedTwice: number;
  readonly staleWritesRefused: number;
  readonly longestOutageMs: number;
}

/** The sale of one strategy. */
export interface SaleView extends Numbers {
  readonly strategy: StrategyName;
  readonly items: number;
  readonly state: 'starting' | 'open' | 'over';
  readonly clicks: number;
  readonly answered: number;
}

/** What the buttons of the page may do now. */
export interface Controls {
  readonly kill: boolean;
  readonly stop: boolean;
  readonly goOn: boolean;
  readonly open: boolean;
}

export interface Snapshot {
  readonly now: number;
  /** Length of a lease. */
  readonly leaseMs: number;
  readonly store: string;
  readonly sentences: readonly Sentence[];
  readonly sales: readonly SaleView[];
  /** Strategy of the last sale; undefined before the first one. */
  readonly strategy?: StrategyName;
  readonly usesLock: boolean;
  readonly lanes: readonly Lane[];
  /** Time at which the lanes stand still, because the sale is over. */
  readonly frozenAt?: number;
  readonly lock?: LockView;
  /** Undefined when the page only shows a run. */
  readonly controls?: Controls;
  /** The demo has ended; this is its last snapshot. */
  readonly isLast: boolean;
}
