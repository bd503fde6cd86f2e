/** In the order in which the demo runs them. */
export const STRATEGY_NAMES = ['none', 'optimistic', 'sql', 'locked', 'manual'] as const;

export type StrategyName = (typeof STRATEGY_NAMES)[number];

/** Returns whether a strategy takes the lock of the sku. */
export const usesLock = (name: StrategyName): boolean => name === 'locked' || name === 'manual';

export const isStrategyName = (name: unknown): name is StrategyName =>
  (STRATEGY_NAMES as readonly unknown[]).includes(name);
