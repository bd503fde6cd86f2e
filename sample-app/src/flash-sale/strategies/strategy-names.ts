/** In the order in which the demo runs them. */
export const STRATEGY_NAMES = ['none', 'optimistic', 'sql', 'locked', 'manual'] as const;

export type StrategyName = (typeof STRATEGY_NAMES)[number];

export const isStrategyName = (name: unknown): name is StrategyName =>
  (STRATEGY_NAMES as readonly unknown[]).includes(name);
